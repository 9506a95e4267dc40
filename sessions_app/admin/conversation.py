"""A chat as its people see it on WhatsApp: all of its sessions in one conversation, with the
person's addresses, memories and cards beside it."""

from __future__ import annotations

import hashlib
from datetime import datetime, time
from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.utils.dateparse import parse_date
from django.utils.timezone import get_current_timezone

from cards_app.models import MemoryCard
from memories_app.selectors import memories_for_staff
from memoryproject.audit.events import audit_record
from memoryproject.audit.staff import staff_actor
from sessions_app import timeline
from sessions_app.admin.bubbles import bubbles_of
from sessions_app.admin.links import chat_lists
from sessions_app.models import Chat
from sessions_app.timeline import TimelinePage

TEMPLATE = "admin/sessions_app/chat/conversation.html"
PART = "admin/sessions_app/chat/timeline.html"
BESIDE = 8


def conversation_address(chat_id: UUID, message_id: UUID | None = None) -> str:
    address = reverse("admin:sessions_app_chat_conversation", args=[chat_id])
    return f"{address}?at={message_id}#m-{message_id}" if message_id else address


def conversation_page(request: HttpRequest, chat_id: UUID, site: dict[str, Any]) -> HttpResponse:
    """``?before=``, ``?after=`` and ``?at=`` take a message's id, ``?date=`` a day, ``?q=`` words
    to find; without them the newest messages. With the header ``X-Live`` the messages alone, or
    304 where nothing changed since: the page asks for that while it is open."""
    if not request.user.has_perms(["sessions_app.view_chat", "sessions_app.view_message"]):
        raise PermissionDenied
    chat = Chat.objects.filter(pk=chat_id).first()
    if chat is None:
        raise Http404("There is no such chat, or not any more.")
    day = _day(request)
    if day is not None:
        first = timeline.first_since(chat, day)
        return redirect(conversation_address(chat.pk, first))
    page = _page(request, chat)
    context = {
        "chat": chat,
        "bubbles": bubbles_of(chat, page.messages),
        "page": page,
        "at": _id(request, "at"),
    }
    shown = render_to_string(PART, context, request)
    tag = f'"{hashlib.sha256(shown.encode()).hexdigest()[:32]}"'
    if "X-Live" in request.headers:
        return _live(request, chat, shown, tag)
    _record(request, chat)
    beside = {
        **site,
        **context,
        **_beside(request, chat),
        "title": chat.client_name or chat.whatsapp_chat,
        "tag": tag,
        "shown": shown,
        "live": not page.newer and "q" not in request.GET,
        "links": chat_lists(chat),
        "opts": Chat._meta,
        "original": chat,
    }
    return TemplateResponse(request, TEMPLATE, beside)


def _live(request: HttpRequest, chat: Chat, shown: str, tag: str) -> HttpResponse:
    same = get_conditional_response(request, etag=tag)
    if same is not None and same.status_code == HttpResponse(status=304).status_code:
        return same
    _record(request, chat)
    return HttpResponse(shown, headers={"ETag": tag})


def _page(request: HttpRequest, chat: Chat) -> TimelinePage:
    for name, read in (
        ("before", timeline.page_before),
        ("after", timeline.page_after),
        ("at", timeline.page_around),
    ):
        place = timeline.place_of(chat, _id(request, name))
        if place is not None:
            return read(chat, place)
    return timeline.page_before(chat)


def _beside(request: HttpRequest, chat: Chat) -> dict[str, Any]:
    """What stands beside the messages, as far as this one may see it."""
    text = request.GET.get("q", "").strip().replace("\x00", "")
    user = request.user
    found: dict[str, Any] = {
        "query": text,
        "found": timeline.messages_found(chat, text) if text else [],
        "addresses": chat.addresses.all(),
    }
    if user.has_perm("memories_app.view_memory"):
        memories = memories_for_staff().filter(chat_id=chat.pk, status="active")
        found["memories"] = memories.order_by("-pinned", "-created_at")[:BESIDE]
    if user.has_perm("cards_app.view_memorycard"):
        found["cards"] = MemoryCard.objects.filter(chat_id=chat.pk)[:BESIDE]
    return found


def _record(request: HttpRequest, chat: Chat) -> None:
    audit_record(
        action="conversation.read",
        actor=staff_actor(request),
        object_type="chat",
        object_id=chat.pk,
        details={"searched": bool(request.GET.get("q"))},
        chat_id=chat.pk,
    )


def _id(request: HttpRequest, name: str) -> UUID | None:
    try:
        return UUID(request.GET.get(name, ""))
    except ValueError:
        return None


def _day(request: HttpRequest) -> datetime | None:
    """The beginning of the day that is asked for, in the business's time zone."""
    try:
        day = parse_date(request.GET.get("date", ""))
    except ValueError:
        return None
    return datetime.combine(day, time.min, get_current_timezone()) if day else None
