"""Serve the inbox: the list of chats as staff work through it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.core.paginator import Page
from django.db.models import Q
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.foundation.admin_kit.period_filter import PARAMETER as WHEN
from memoryproject.foundation.admin_kit.periods import UnknownSpanError, span_of
from memoryproject.foundation.audit.audit_events import audit_record
from memoryproject.foundation.audit.staff import staff_actor
from memoryproject.foundation.process.narrowing import instance
from sessions_app.inbox.chat_list import Row, Wanted, chats_wanted, inbox_pages, inbox_rows
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.limits.facade import FILTERS
from sessions_app.models import Chat, Label, Message
from sessions_app.models.chats import Provider
from sessions_app.models.messages import Role
from sessions_app.presentation.links import conversation_address
from sessions_app.presentation.message_kinds import TICKS, Kind, Tick, kind_of
from sessions_app.presentation.page_timestamp import made_stamp
from sessions_app.recall.facade import (
    RECENT,
    Snippet,
    messages_with_parts,
    newest_messages_found,
    snippet_of,
)

TEMPLATE = "admin/sessions_app/chat/inbox.html"
READ_MESSAGES = "sessions_app.view_message"
SHORT = 160
HITS = 20
MAX_HITS = 400
MAX_QUERY_LENGTH = 200
PERIODS = (
    ("today", gettext_lazy("Today")),
    ("7", gettext_lazy("Past 7 days")),
    ("30", gettext_lazy("Past 30 days")),
)


ACCESSES = tuple(
    zip(
        FILTERS,
        (
            gettext_lazy("blocked"),
            gettext_lazy("allowed"),
            gettext_lazy("neither blocked nor allowed"),
            gettext_lazy("opted out"),
            gettext_lazy("limit reached today"),
        ),
        strict=True,
    )
)


@dataclass(frozen=True)
class Line:
    """A row as it is displayed; ``short`` is the beginning of the last message."""

    row: Row
    address: str
    name: str
    short: str
    kind: Kind | None
    tick: Tick | None
    ours: bool

    @property
    def unread(self) -> str:
        return "99+" if self.row.unread > 99 else str(self.row.unread or "")


@dataclass(frozen=True)
class Choice:
    """A staff member as an option of a form."""

    pk: int
    name: str


@dataclass(frozen=True)
class Hit:
    """A message that was found."""

    message: Message
    address: str
    snippet: Snippet


def inbox_page(
    request: HttpRequest, site: dict[str, Any], actions: list[tuple[str, str]]
) -> TemplateResponse:
    """Show the inbox; ``actions`` are the admin's own actions for selected chats."""
    user = instance(request.user, User)
    made = made_stamp(timezone.now())
    wanted = wanted_of(request)
    chats = chats_wanted(
        wanted,
        user,
        memory_default=settings.ENABLE_MEMORY_SYSTEM,
        today=build_usage_limits().day_of(timezone.now()),
    )
    page = inbox_pages(chats).get_page(request.GET.get("p"))
    reads = user.has_perm(READ_MESSAGES)
    hits, more, in_part = _hits(request, wanted) if reads and wanted.query else ([], "", False)
    if reads:
        _record(request)
    context = {
        **site,
        "title": _("Inbox"),
        "opts": Chat._meta,
        "made": made,
        "page": page,
        "lines": _lines(page, user, reads=reads),
        "hits": hits,
        "more_hits": more,
        "in_part": RECENT if in_part else 0,
        "wanted": wanted,
        "narrowed": bool(replace(wanted, query="")),
        "reads": reads,
        "reviews": user.has_perm("sessions_app.review_chat"),
        "actions": actions,
        "staff": staff_choices(),
        "assignees": staff_choices(also=_number(wanted.assigned)),
        "labels": list(Label.objects.all()),
        "providers": Provider.choices,
        "accesses": ACCESSES,
        "when": request.GET.get(WHEN, ""),
        "periods": PERIODS,
        "newer": _moved(request, page.number - 1) if page.has_previous() else "",
        "older": _moved(request, page.number + 1) if page.has_next() else "",
        "is_empty": not (page.object_list or wanted),
    }
    return TemplateResponse(request, TEMPLATE, context)


def wanted_of(request: HttpRequest) -> Wanted:
    """Read the filters from the query string, and ignore invalid ones."""
    parameters = request.GET
    query = parameters.get("q", "").replace("\x00", "").strip()[:MAX_QUERY_LENGTH]
    return Wanted(
        query=query,
        unread=parameters.get("unread") == "1",
        bookmarked=parameters.get("bookmarked") == "1",
        failed=parameters.get("failed") == "1",
        unreviewed=parameters.get("unreviewed") == "1",
        paused=parameters.get("paused") == "1",
        assigned=_assigned(parameters.get("assigned", "")),
        label=_number(parameters.get("label", "")),
        provider=_one_of(parameters.get("provider", ""), Provider.values),
        kind=_one_of(parameters.get("kind", ""), ("person", "group")),
        access=_one_of(parameters.get("access", ""), FILTERS),
        memory=_one_of(parameters.get("memory", ""), ("on", "off")),
        active=_span(parameters.get(WHEN, "")),
    )


def staff_choices(*, also: int | None = None) -> list[Choice]:
    """Return the staff members to whom a conversation can be assigned.

    ``also`` is the current assignee, whose account may be inactive by now; without this option a
    form would show another person, or nobody.
    """
    can_log_in = Q(is_active=True, is_staff=True)
    found = User.objects.filter(can_log_in | Q(pk=also)).order_by("username")
    return [Choice(each.pk, _choice_name(each)) for each in found]


def _choice_name(user: User) -> str:
    if user.is_active and user.is_staff:
        return user.get_username()
    return _("%(name)s (switched off)") % {"name": user.get_username()}


def _lines(page: Page[Chat], user: User, *, reads: bool) -> Iterator[Line]:
    for row in inbox_rows(list(page.object_list), user):
        last = row.last if reads else None
        yield Line(
            row=row,
            address=conversation_address(row.chat.pk),
            name=row.chat.shown_name,
            short=last.content[:SHORT] if last else "",
            kind=kind_of(last.kind) if last else None,
            tick=TICKS.get(last.delivery_status) if last else None,
            ours=last is not None and last.role == Role.ASSISTANT,
        )


def _hits(request: HttpRequest, wanted: Wanted) -> tuple[list[Hit], str, bool]:
    """Return the newest messages with these words in all chats.

    Also returns the address of older ones, and whether only parts of their words match.
    """
    first = min(_number(request.GET.get("hits", "")) or 0, MAX_HITS)
    messages = Message.objects.all()
    found = newest_messages_found(messages, wanted.query, first, HITS + 1)
    in_part = not found
    if in_part and (part := messages_with_parts(messages, wanted.query)) is not None:
        newest = messages.filter(part).select_related("chat").defer("terms")
        found = list(newest.order_by("-received_at", "-order_num")[first : first + HITS + 1])
    more = ""
    if len(found) > HITS and first + HITS <= MAX_HITS:
        parameters = request.GET.copy()
        parameters["hits"] = str(first + HITS)
        more = f"?{parameters.urlencode()}#hits"
    hits = [
        Hit(
            message,
            conversation_address(message.chat_id, message.pk, query=wanted.query),
            snippet_of(message.content, wanted.query),
        )
        for message in found[:HITS]
    ]
    return hits, more, in_part and bool(hits)


def _record(request: HttpRequest) -> None:
    """Audit that the user saw the last messages of many chats; the search text isn't recorded."""
    audit_record(
        action="conversation.read",
        actor=staff_actor(request),
        details={"list": "chat", "searched": bool(request.GET.get("q"))},
    )


def _moved(request: HttpRequest, number: int) -> str:
    parameters = request.GET.copy()
    parameters["p"] = str(number)
    return f"?{parameters.urlencode()}"


def _span(key: str) -> tuple[datetime, datetime] | None:
    try:
        return span_of(key, now=timezone.now())
    except UnknownSpanError:
        return None


def _assigned(who: str) -> str:
    if who in ("me", "nobody", "somebody"):
        return who
    number = _number(who)
    return "" if number is None else str(number)


def _one_of(value: str, known: Any) -> str:
    return value if value in known else ""


def _number(value: str) -> int | None:
    """Return the value as a primary key; None if it can't be one."""
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        return None
    return int(value)


def chosen_chats(request: HttpRequest) -> list[UUID]:
    """Return the chats that were ticked, without invalid ids."""
    found = []
    for value in request.POST.getlist("_selected_action"):
        try:
            found.append(UUID(value))
        except ValueError:
            continue
    return found
