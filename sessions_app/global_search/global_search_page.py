"""The search over people, messages and memories, which stands in the head of every page."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from memoryproject.foundation.audit.audit_events import audit_record, staff_actor
from memoryproject.foundation.process.narrowing import instance
from sessions_app.global_search.find import MESSAGES, everything_found, kinds_allowed
from sessions_app.inbox.presentation import MAX_QUERY_LENGTH

TEMPLATE = "admin/global_search/page.html"
HITS = "admin/global_search/hits.html"
# Of each kind.
AS_TYPED, ON_THE_PAGE = 5, 20


@require_safe
def search_page(request: HttpRequest, site: dict[str, Any]) -> HttpResponse:
    """Show what has the words of ``?words=``.

    With the header ``X-Search`` the response is the first hits alone, for the box in the head of
    a page, which sends that request while somebody types.
    """
    user = instance(request.user, User)
    kinds = kinds_allowed(user)
    if not kinds:
        raise PermissionDenied
    words = request.GET.get("words", "").replace("\x00", "").strip()[:MAX_QUERY_LENGTH]
    typed = "X-Search" in request.headers
    most = AS_TYPED if typed else ON_THE_PAGE
    groups = everything_found(words, user, most=most) if words else []
    if words and MESSAGES in kinds:
        _record(request)
    context = {
        "words": words,
        "groups": groups,
        "found": sum(len(group.hits) for group in groups),
        "longest": MAX_QUERY_LENGTH,
        "title": _("Search"),
        "typed": typed,
    }
    if typed:
        return HttpResponse(render_to_string(HITS, context, request))
    return TemplateResponse(request, TEMPLATE, {**site, **context})


def search_address(user: User | AnonymousUser) -> str:
    """Return the address of the search; "" for those who may find nothing."""
    return reverse("admin:global_search") if kinds_allowed(user) else ""


def _record(request: HttpRequest) -> None:
    """Audit that the user saw messages of many chats; the search text isn't recorded."""
    audit_record(
        action="conversation.read",
        actor=staff_actor(request),
        details={"list": "global search", "searched": True},
    )
