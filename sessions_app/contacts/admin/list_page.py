"""Serve the list of contacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from memoryproject.foundation.admin_kit.bounded_pages import MAX_ROWS
from memoryproject.foundation.admin_kit.list_csv import PARAMETER as CSV
from memoryproject.foundation.admin_kit.list_csv import csv_answer
from memoryproject.foundation.audit.audit_events import list_export_record
from sessions_app.contacts.contact_list import (
    contact_lines,
    contact_pages,
    contact_rows,
    contact_titles,
    contacts_found,
)
from sessions_app.inbox.presentation import ACCESSES, MAX_QUERY_LENGTH
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.models import Chat

TEMPLATE = "admin/contacts/list.html"
SEE = "sessions_app.view_chat"


@require_safe
def contacts_page(request: HttpRequest, site: dict[str, Any]) -> HttpResponse:
    """Show the people; ``?q=`` takes a part of a name or a number, ``?access=`` a filter.

    With ``?_csv=`` it returns the list as a file.
    """
    if not request.user.has_perm(SEE):
        raise PermissionDenied
    query = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_QUERY_LENGTH]
    access = request.GET.get("access", "")
    access = access if access in dict(ACCESSES) else ""
    today = build_usage_limits().day_of(timezone.now())
    people = contacts_found(query, access=access, today=today)
    if CSV in request.GET:
        return _csv(request, list(people[:MAX_ROWS]))
    page = contact_pages(people).get_page(request.GET.get("p"))
    context = {
        **site,
        "title": _("Contacts"),
        "opts": Chat._meta,
        "query": query,
        "access": access,
        "accesses": ACCESSES,
        "longest": MAX_QUERY_LENGTH,
        "page": page,
        "rows": contact_rows(list(page.object_list), **_counted(request)),
        "newer": _moved(request, page.number - 1) if page.has_previous() else "",
        "older": _moved(request, page.number + 1) if page.has_next() else "",
    }
    return TemplateResponse(request, TEMPLATE, context)


def _csv(request: HttpRequest, people: Sequence[Chat]) -> HttpResponse:
    """Return these people as a file. The audit log has that it was taken."""
    counted = _counted(request)
    list_export_record(request, "contact", len(people))
    rows = contact_rows(people, **counted)
    return csv_answer("contacts", contact_titles(**counted), contact_lines(rows))


def _counted(request: HttpRequest) -> dict[str, bool]:
    """Return which numbers the reader may see."""
    return {
        "with_sessions": request.user.has_perm("sessions_app.view_chatsession"),
        "with_memories": request.user.has_perm("memories_app.view_memory"),
    }


def _moved(request: HttpRequest, number: int) -> str:
    parameters = request.GET.copy()
    parameters["p"] = str(number)
    return f"?{parameters.urlencode()}"
