"""Let staff merge two contacts: find the other one, look at the preview, confirm."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from memoryproject.foundation.audit.audit_events import staff_actor
from sessions_app.contacts.admin.contact_page import MERGE, contact_name
from sessions_app.contacts.contact_list import alike_contacts, contact_rows, contacts_found
from sessions_app.contacts.merge_rows import compared, warnings_of
from sessions_app.history.dependencies import build_chat_memory
from sessions_app.inbox.presentation import MAX_QUERY_LENGTH
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.merging.facade import (
    MergeError,
    MergePreview,
    SeenChangedError,
    contacts_merge,
    merge_preview,
)
from sessions_app.models import Chat
from sessions_app.presentation.chat_page import chat_or_404
from sessions_app.presentation.links import contact_address
from sessions_app.turns.facade import answer_soon

FIND = "admin/contacts/merge_find.html"
PREVIEW = "admin/contacts/merge.html"
SHOWN = 20


@require_safe
def merge_find_page(request: HttpRequest, chat_id: UUID, site: dict[str, Any]) -> TemplateResponse:
    """Search for the contact to merge with, as the list of contacts does.

    Without ``?q=`` it shows the contacts of the same name.
    """
    chat = contact_to_merge(request, chat_id)
    query = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_QUERY_LENGTH]
    today = build_usage_limits().day_of(timezone.now())
    found = contacts_found(query, today=today) if query else alike_contacts(chat)
    people = list(found.exclude(pk=chat.pk)[: SHOWN + 1])
    context = {
        **site,
        "title": _("Merge with another contact"),
        "opts": Chat._meta,
        "chat": chat,
        "name": contact_name(chat),
        "query": query,
        "longest": MAX_QUERY_LENGTH,
        "rows": contact_rows(people[:SHOWN], with_sessions=True, with_memories=True),
        "more": len(people) > SHOWN,
    }
    return TemplateResponse(request, FIND, context)


@require_http_methods(["GET", "HEAD", "POST"])
def merge_page(
    request: HttpRequest, chat_id: UUID, other_id: UUID, site: dict[str, Any]
) -> HttpResponse:
    """Show what the merge would do. A POST does it, unless the preview would be another one now."""
    chat, other = contact_to_merge(request, chat_id), chat_or_404(other_id)
    problem = ""
    if request.method == "POST":
        try:
            return _merge(request, chat, other)
        except SeenChangedError as error:
            problem = str(error)
        except MergeError as error:
            messages.error(request, str(error))
            return redirect("admin:contact_merge_find", chat_id)
    try:
        preview = merge_preview(chat, other, chat_memory=build_chat_memory())
    except MergeError as error:
        messages.error(request, str(error))
        return redirect("admin:contact_merge_find", chat_id)
    return TemplateResponse(
        request, PREVIEW, {**site, **_shown(request, chat, preview), "problem": problem}
    )


def _shown(request: HttpRequest, chat: Chat, preview: MergePreview) -> dict[str, Any]:
    staff_names = [preview.kept.chat.staff_name, preview.gone.chat.staff_name]
    usual = next(filter(None, [*staff_names, *preview.names]), "")
    return {
        "title": _("Merge two contacts"),
        "opts": Chat._meta,
        "chat": chat,
        "name": contact_name(chat),
        "kept_name": contact_name(preview.kept.chat),
        "gone_name": contact_name(preview.gone.chat),
        "preview": preview,
        "rows": compared(preview),
        "warnings": warnings_of(preview),
        "chosen": request.POST.get("name", usual),
    }


def _merge(request: HttpRequest, chat: Chat, other: Chat) -> HttpResponse:
    merged = contacts_merge(
        one=chat.pk,
        other=other.pk,
        name=request.POST.get("name", ""),
        seen=request.POST.get("seen", ""),
        actor=staff_actor(request),
        chat_memory=build_chat_memory(),
    )
    # Answers that a worker had begun in the contact that is gone wait in the merged one.
    answer_soon(merged.pk)
    messages.success(request, _("The two contacts are one now."))
    return redirect(contact_address(merged.pk))


def contact_to_merge(request: HttpRequest, chat_id: UUID) -> Chat:
    """Return the contact, for who may merge and split contacts.

    Raises PermissionDenied and Http404.
    """
    if not request.user.has_perms(MERGE):
        raise PermissionDenied
    return chat_or_404(chat_id)
