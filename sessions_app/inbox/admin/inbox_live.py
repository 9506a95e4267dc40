"""Keep the open list of the inbox up to date, on its own page and beside a conversation."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.utils.safestring import SafeString

from memoryproject.foundation.audit.audit_events import audit_record, staff_actor
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.inbox.admin.inbox_list import (
    Figures,
    Listing,
    figures_of,
    list_context,
    listing_of,
)

LIST = "admin/sessions_app/chat/inbox_fragment.html"
PANE = "admin/sessions_app/chat/inbox_pane.html"
# What the open page asks for.
FIGURES, BESIDE = "figures", "pane"
# A window that is wide enough has this cookie, with the filters of the list that was open last.
COOKIE = "inbox-pane"
MAX_QUERY = 2_000


def inbox_fragment(request: HttpRequest, actions: list[tuple[str, str]]) -> HttpResponse:
    """Return the open inbox's list alone, or 304 where nothing changed since.

    The page sends its own version in ``If-None-Match``. The version is made of the rows, before
    the list is rendered. With ``X-Live: pane`` the list is made for the page of the conversation
    that ``X-Chat`` names. With ``X-Live: figures``, for a page that nobody looks at, the response
    is empty and its headers have the numbers for the page's title and the menu. Nothing was read
    then, so it isn't audited.
    """
    if request.headers.get("X-Live") == FIGURES:
        numbers = _headers(figures_of(request, request.GET))
        return HttpResponse(status=HTTPStatus.NO_CONTENT, headers=numbers)
    listing = listing_of(request, request.GET)
    tag = listing.version
    same = get_conditional_response(request, etag=tag)
    if same is not None and same.status_code == HTTPStatus.NOT_MODIFIED:
        return same
    if listing.reads:
        list_record(request, searched=bool(request.GET.get("q")))
    if request.headers.get("X-Live") == BESIDE:
        chat_id = uuid_or_none(request.headers.get("X-Chat", ""))
        context = _beside(request, request.GET, listing, chat_id)
    else:
        context = list_context(request, request.GET, listing, actions)
    shown = render_to_string(LIST, context, request)
    return HttpResponse(shown, headers={"ETag": tag, **_headers(listing.figures)})


def _headers(figures: Figures) -> dict[str, str]:
    return {
        "X-Unread": str(figures.unread),
        "X-News": str(figures.news),
        "X-Attention": str(figures.attention),
    }


def inbox_pane(request: HttpRequest, chat_id: UUID) -> SafeString | None:
    """Return the list of the inbox for the page of this conversation; None in a narrow window.

    The list is the one that was open last.
    """
    if COOKIE not in request.COOKIES:
        return None
    query = unquote(request.COOKIES[COOKIE])[:MAX_QUERY]
    parameters = QueryDict(query)
    listing = listing_of(request, parameters)
    if listing.reads:
        list_record(request, searched=bool(parameters.get("q")))
    context = _beside(request, parameters, listing, chat_id)
    return render_to_string(PANE, {**context, "query": parameters.urlencode()}, request)


def _beside(
    request: HttpRequest, parameters: QueryDict, listing: Listing, chat_id: UUID | None
) -> dict[str, Any]:
    """Return what the list needs beside a conversation, where nothing can be done with it."""
    inbox = reverse("admin:sessions_app_chat_changelist")
    context = list_context(request, parameters, listing, [], inbox=inbox)
    return {**context, "reviews": False, "open_chat": chat_id}


def list_record(request: HttpRequest, *, searched: bool) -> None:
    """Audit that the user saw the last messages of many chats; the search text isn't recorded."""
    audit_record(
        action="conversation.read",
        actor=staff_actor(request),
        details={"list": "chat", "searched": searched},
    )
