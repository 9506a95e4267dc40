"""Show a chat as on WhatsApp: all of its sessions as one conversation.

The page also shows the notes and knowledge of staff next to the conversation.
"""

import hashlib
from datetime import datetime, time
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.dateparse import parse_date
from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext as _

from cards_app.models import MemoryCard
from memories_app.visibility import memories_for_staff
from memoryproject.foundation.admin_kit.staff_pages import rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_read_record
from memoryproject.foundation.process.narrowing import instance
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app import models
from sessions_app.conversation_views.message_view import bubbles_of
from sessions_app.conversations.timeline import (
    FOUND,
    Place,
    TimelinePage,
    first_since,
    messages_found,
    page_after,
    page_around,
    page_before,
    place_of,
)
from sessions_app.inbox.filters_page import MAX_QUERY_LENGTH
from sessions_app.inbox.inbox import CHOICES as SNOOZE_CHOICES, Hit, inbox_pane, staff_choices
from sessions_app.inbox.move_markers import chat_look, snoozes_in_force
from sessions_app.inbox.notes import NoteForm
from sessions_app.inbox.read_markers import (
    FROM_PEOPLE,
    MAX_UNREAD,
    SAID,
    news_count,
    news_first,
    place_marked,
)
from sessions_app.limits.presentation import access_context
from sessions_app.models.review import MAX_NOTE_LENGTH
from sessions_app.person.person_pages import person_context
from sessions_app.presentation import links
from sessions_app.recall.facade import snippet_of
from sessions_app.takeover.presentation import pause_mark, reply_number, takeover_context

TEMPLATE = "admin/sessions_app/chat/conversation.html"
PART = "admin/sessions_app/chat/timeline.html"


def conversation_page(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Show the messages of a chat.

    ``?before=``, ``?after=`` and ``?at=`` take a message's id, ``?date=`` a day, ``?q=`` words to
    find. Without them the newest messages are shown.

    With the header ``X-Live`` the response is the messages alone, or 304 where nothing changed
    since. The open page sends that request regularly. Its header ``X-News`` names the first message
    that was new when the page was opened. ``X-Made`` of the response states when these messages
    were read.
    """
    rights_required(request, "sessions_app.view_chat", "sessions_app.view_message")
    user = instance(request.user, User)
    made = links.made_stamp(timezone.now())
    chat = links.chat_or_404(chat_id)
    day = _day(request)
    if day is not None:
        return _to_day(request, chat, day)
    is_live = "X-Live" in request.headers
    page = _page(request, chat)
    seen_to = place_marked(models.ReadMark.objects.filter(user=user, chat=chat).first())
    news = uuid_or_none(request.headers.get("X-News", "")) if is_live else _news(chat, seen_to)
    context = _timeline(request, chat, page, user, news)
    shown = render_to_string(PART, context, request)
    tag = f'"{hashlib.sha256(shown.encode()).hexdigest()[:32]}"'
    if is_live:
        return _live(request, chat, page, shown, {"ETag": tag, "X-Made": made})
    _record(request, chat)
    _look(request, chat, page)
    whole = {
        **context,
        **_around(request, chat, user),
        **_unread(chat, page, seen_to, news),
        "tag": tag,
        "made": made,
        "shown": shown,
        "live": not page.newer and "q" not in request.GET,
        # Last, so that what is seen now doesn't count as unread in the list.
        "pane": inbox_pane(request, chat.pk),
    }
    return staff_page(request, TEMPLATE, chat.shown_name, whole, of=models.Chat)


def _to_day(request: HttpRequest, chat: models.Chat, day: datetime) -> HttpResponse:
    """Lead to the first message of the day, or to the next one after it."""
    first = first_since(chat, day)
    _report_empty_day(request, first, day)
    return redirect(links.conversation_address(chat.pk, first))


def _timeline(
    request: HttpRequest, chat: models.Chat, page: TimelinePage, user: User, news: UUID | None
) -> dict[str, Any]:
    """Return the context of the messages alone."""
    access = models.ChatAccess.objects.filter(chat=chat, marketing_at__isnull=False).first()
    decided = access.marketing_at if access else None
    bubbles = bubbles_of(chat, page.messages, user, news, decided, is_end=not page.newer)
    newest = bubbles[-1].message.timestamp if bubbles and not page.newer else None
    return {
        "chat": chat,
        "bubbles": bubbles,
        "marketing": access,
        "marketing_is_last": bool(decided and newest and newest <= decided),
        "page": page,
        "at": _id(request, "at"),
        "reviews": user.has_perm("sessions_app.review_chat"),
        "replies_by": reply_number(request, chat),
        "pause_mark": pause_mark(chat),
    }


def _around(request: HttpRequest, chat: models.Chat, user: User) -> dict[str, Any]:
    """Return the context of the areas next to and under the messages."""
    return {
        **found_in(request, chat),
        **sidebar_context(request, chat),
        **person_context(request, chat, most=SHOWN_OF_PERSON),
        **review_of(request, chat, user),
        **takeover_context(request, chat),
        **access_context(request, chat),
        "original": chat,
    }


def _unread(
    chat: models.Chat, page: TimelinePage, seen_to: Place, news: UUID | None
) -> dict[str, Any]:
    """Return what the user hasn't seen, as it was before this page was shown."""
    return {
        "news": news,
        "news_count": news_count({chat.pk: seen_to}, FROM_PEOPLE, MAX_UNREAD).get(chat.pk, 0),
        "news_is_here": any(message.pk == news for message in page.messages),
    }


def _live(
    request: HttpRequest, chat: models.Chat, page: TimelinePage, shown: str, headers: dict[str, str]
) -> HttpResponse:
    same = get_conditional_response(request, etag=headers["ETag"])
    if same is not None and same.status_code == HttpResponse(status=304).status_code:
        return same
    _record(request, chat)
    _look(request, chat, page)
    return HttpResponse(shown, headers=headers)


def _news(chat: models.Chat, seen_to: Place) -> UUID | None:
    """Return the first message of the person since the user's last visit."""
    first = news_first({chat.pk: seen_to}, FROM_PEOPLE).get(chat.pk)
    return first[0] if first else None


def _look(request: HttpRequest, chat: models.Chat, page: TimelinePage) -> None:
    """Mark the conversation as seen if the page shows its end."""
    if page.newer or not page.messages:
        return
    last = page.messages[-1]
    place = Place.of(last)
    chat_look(user=instance(request.user, User), chat_id=chat.pk, place=place)


def _page(request: HttpRequest, chat: models.Chat) -> TimelinePage:
    for name, read in (("before", page_before), ("after", page_after), ("at", page_around)):
        place = place_of(chat, _id(request, name))
        if place is not None:
            return read(chat, place)
    return page_before(chat)


def _record(request: HttpRequest, chat: models.Chat) -> None:
    searched = bool(request.GET.get("q"))
    staff_read_record(request, "chat", chat.pk, chat_id=chat.pk, searched=searched)


def _report_empty_day(request: HttpRequest, first: UUID | None, day: datetime) -> None:
    """Report that there are no messages on the requested day, and what is shown instead."""
    if first is None:
        messages.info(request, _("Nothing was said on that day or later: this is the end."))
        return
    timestamp = models.Message.objects.filter(pk=first).values_list("timestamp", flat=True).first()
    if timestamp is not None and timezone.localtime(timestamp).date() != day.date():
        messages.info(request, _("Nothing was said on that day: this came next."))


def _id(request: HttpRequest, name: str) -> UUID | None:
    return uuid_or_none(request.GET.get(name, ""))


def _day(request: HttpRequest) -> datetime | None:
    """Return the beginning of the requested day, in the business's time zone."""
    try:
        day = parse_date(request.GET.get("date", ""))
    except ValueError:
        return None
    return datetime.combine(day, time.min, get_current_timezone()) if day else None


# Find words in one conversation, with links from hit to hit.


def found_in(request: HttpRequest, chat: models.Chat) -> dict[str, Any]:
    """Return the hits of the search.

    ``hit_before`` and ``hit_after`` lead to the next older and newer hit from the current one;
    without a current hit, they lead to the newest.
    """
    text = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_QUERY_LENGTH]
    found = messages_found(chat, text) if text else []
    hits = [
        Hit(
            message,
            links.conversation_address(chat.pk, message.pk, query=text),
            snippet_of(message.content, text),
        )
        for message in found
    ]
    place = _place(hits, request.GET.get("at", ""))
    return {
        "query": text,
        "hits": hits,
        "most_hits": FOUND,
        "hit_number": None if place is None else place + 1,
        # The newest are first.
        "hit_before": _address(hits, 0 if place is None else place + 1),
        "hit_after": "" if place is None else _address(hits, place - 1),
    }


def _place(hits: list[Hit], at: str) -> int | None:
    key = uuid_or_none(at)
    keys = [hit.message.pk for hit in hits]
    return keys.index(key) if key in keys else None


def _address(hits: list[Hit], place: int) -> str:
    return hits[place].address if 0 <= place < len(hits) else ""


# Build the sidebar of a conversation: what is known of its people, and the work of staff.

SHOWN = 8
SHOWN_OF_PERSON = 3
NOTES = 50


def sidebar_context(request: HttpRequest, chat: models.Chat) -> dict[str, Any]:
    """Return addresses, memories and cards, as far as the user may see them."""
    user = request.user
    found: dict[str, Any] = {
        "addresses": chat.addresses.all(),
        "links": links.chat_lists(chat, user),
    }
    if user.has_perm("memories_app.view_memory"):
        memories = memories_for_staff().filter(chat_id=chat.pk, status="active")
        found["memories"] = memories.order_by("-pinned", "-created_at")[:SHOWN]
        found["all_memories"] = links.list_address("memories_app_memory", chat_id__exact=chat.pk)
    if user.has_perm("cards_app.view_memorycard"):
        found["cards"] = MemoryCard.objects.filter(chat_id=chat.pk)[:SHOWN]
        found["all_cards"] = links.list_address("cards_app_memorycard", q=chat.pk)
    return found


def review_of(request: HttpRequest, chat: models.Chat, user: User) -> dict[str, Any]:
    """Return the state of the review.

    ``about``: the message for a new note.
    """
    mark = models.ReviewedMark.objects.filter(chat=chat).select_related("reviewed_by").first()
    since = news_count({chat.pk: place_marked(mark)}, SAID, 1) if mark else {}
    assignment = models.Assignment.objects.filter(chat=chat).select_related("assignee").first()
    snooze = models.Snooze.objects.filter(chat=chat).first()
    in_force = snoozes_in_force().filter(chat=chat).first()
    labels = list(models.Label.objects.filter(chat_labels__chat=chat))
    notes = models.Note.objects.filter(chat=chat).select_related("message")[: NOTES + 1]
    return {
        "mark": mark,
        # What came back after a snooze is open again.
        "is_reviewed": mark is not None and not since and snooze is None,
        "snooze": in_force,
        "snoozes": SNOOZE_CHOICES,
        "assignee": assignment.assignee if assignment else None,
        "staff": staff_choices(also=assignment.assignee_id if assignment else None),
        "labels": labels,
        "other_labels": list(models.Label.objects.exclude(pk__in=[label.pk for label in labels])),
        "notes": [
            (note, NoteForm(instance=note) if note.author_id == user.pk else None)
            for note in notes[:NOTES]
        ],
        "has_more_notes": len(notes) > NOTES,
        "longest_note": MAX_NOTE_LENGTH,
        "is_bookmarked": models.Bookmark.objects.filter(
            chat=chat, user=user, message=None
        ).exists(),
        "about": _about(request, chat),
        "here": request.get_full_path(),
    }


def _about(request: HttpRequest, chat: models.Chat) -> models.Message | None:
    key = uuid_or_none(request.GET.get("note"))
    if key is None:
        return None
    return models.Message.objects.filter(chat=chat, pk=key).defer("terms").first()
