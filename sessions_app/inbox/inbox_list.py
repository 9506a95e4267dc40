"""The list of the inbox: the rows of a page as they are displayed, and their version."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import User
from django.core.paginator import Page, Paginator
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from memories_app.models import ProposalKind, ProposalMemory
from memoryproject.foundation.admin_kit.list_csv import MAX_ROWS, Column, csv_of
from memoryproject.foundation.audit.audit_events import list_export_record
from memoryproject.foundation.process.narrowing import instance
from sessions_app.inbox import chat_list, needs
from sessions_app.inbox.filters_page import STATE_NAMES, number_of, wanted_of
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.models import Chat
from sessions_app.models.limits import Standing
from sessions_app.presentation.links import made_stamp


@dataclass(frozen=True)
class Figures:
    """The numbers of an open inbox.

    ``unread``: conversations on its page with messages that are new to me; ``news``: these
    messages; ``attention``: the number of rows of the queue.
    """

    unread: int
    news: int
    attention: int


@dataclass(frozen=True)
class Listing:
    """One page of the inbox, as one person sees it.

    ``made``: stamp of the time before anything was read. ``reads``: the person may read messages.
    ``attention``: the number of rows of the queue. ``beside``: those of them that are no chats, on
    the first page of the queue alone.
    """

    made: str
    wanted: chat_list.Wanted
    page: Page[Chat]
    rows: Sequence[chat_list.Row]
    reads: bool
    attention: int
    tabs: Sequence[Tab]
    beside: Sequence[Beside]

    @property
    def figures(self) -> Figures:
        unread = [row.unread for row in self.rows if row.unread]
        return Figures(len(unread), sum(unread), self.attention)

    @property
    def version(self) -> str:
        """Return an ETag that changes whenever something on display does."""
        paginator = self.page.paginator
        total = (self.page.number, paginator.count, self.attention)
        counts = [tab.count for tab in self.tabs]
        shown = repr((total, counts, self.beside, [_version_of(row) for row in self.rows]))
        return f'"{hashlib.sha256(shown.encode()).hexdigest()[:32]}"'


def chats_listed(request: HttpRequest, wanted: chat_list.Wanted) -> QuerySet[Chat]:
    """Return the chats that fit these filters for the user, the newest first."""
    return chat_list.chats_wanted(
        wanted,
        instance(request.user, User),
        memory_default=settings.ENABLE_MEMORY_SYSTEM,
        today=build_usage_limits().day_of(timezone.now()),
    )


def listing_of(request: HttpRequest, parameters: QueryDict) -> Listing:
    """Read the page of the inbox with these filters, without rendering it."""
    user = instance(request.user, User)
    made = made_stamp(timezone.now())
    wanted = wanted_of(parameters)
    pages, page = _page_of(request, parameters, wanted)
    reads = user.has_perm(chat_list.READ_MESSAGES)
    rows = chat_list.inbox_rows(list(page.object_list), user, with_reasons=wanted.needs)
    waiting = waiting_shown(request, pages.count if wanted == QUEUE else None)

    def count(part: chat_list.Wanted) -> int:
        if part == QUEUE:
            return waiting.total
        whole = chat_list.Wanted(state=wanted.state)
        if wanted == part:
            return min(pages.count, MAX_IN_TAB)
        found = chats_listed(request, part).order_by()
        if (
            wanted == whole
            and isinstance(pages, chat_list.InboxPaginator)
            and pages.only_keys is not None
        ):
            # All of the state's chats are known: a part of it isn't looked for again.
            found = found.filter(pk__in=pages.only_keys)
        return found[:MAX_IN_TAB].count()

    tabs = tabs_of(wanted, count)
    beside = list(_beside(waiting)) if wanted == QUEUE and page.number == 1 else []
    return Listing(made, wanted, page, rows, reads, waiting.total, tabs, beside)


@dataclass(frozen=True)
class Beside:
    """A row of the queue that is no conversation: why it waits, its texts, and where to decide."""

    reason: str
    texts: Sequence[str]
    address: str
    at: datetime


def _beside(waiting: needs.Waiting) -> Iterator[Beside]:
    """Yield the suggested memories, and the memories that are one or contradict each other."""
    queue = reverse("admin:memories_app_memory_waiting")
    rows = needs.memories_proposed().values_list("content", "created_at")[: waiting.suggested]
    for content, at in rows:
        yield Beside(_("suggested memory"), [content[: chat_list.SHORT]], f"{queue}#suggested", at)
    parts = ProposalMemory.objects.order_by("number").select_related("memory")
    parts = parts.only("number", "proposal_id", "memory__content")
    found = needs.proposals_open().prefetch_related(Prefetch("parts", queryset=parts))
    for each in found[: waiting.proposals]:
        replaces = each.kind == ProposalKind.REPLACE
        reason = _("contradictory memories") if replaces else _("duplicate memories")
        texts = [part.memory.content[: chat_list.SHORT] for part in each.parts.all()]
        yield Beside(reason, texts, f"{queue}#proposals", each.created_at)


def figures_of(request: HttpRequest, parameters: QueryDict) -> Figures:
    """Return the numbers of this page of the inbox, without reading its rows."""
    _, page = _page_of(request, parameters, wanted_of(parameters))
    keys = [chat.pk for chat in page.object_list]
    unread = chat_list.unread_counts(keys, instance(request.user, User))
    return Figures(len(unread), sum(unread.values()), waiting_shown(request).total)


def _page_of(
    request: HttpRequest, parameters: QueryDict, wanted: chat_list.Wanted
) -> tuple[Paginator[Any], Page[Any]]:
    if wanted == QUEUE:
        return _queue_page(parameters)
    number = number_of(parameters.get("p", "")) or 1
    pages = chat_list.InboxPaginator(chats_listed(request, wanted), number)
    return pages, pages.get_page(parameters.get("p"))


def _queue_page(parameters: QueryDict) -> tuple[Paginator[Any], Page[Any]]:
    """Return the page by the keys of all chats that wait, which one query finds and orders."""
    pages: Paginator[Any] = Paginator(needs.chats_waiting(), chat_list.CHATS_A_PAGE)
    page = pages.get_page(parameters.get("p"))
    chats = Chat.objects.select_related("activity").in_bulk(page.object_list)
    page.object_list = [chats[key] for key in page.object_list if key in chats]
    return pages, page


def list_context(
    request: HttpRequest,
    parameters: QueryDict,
    listing: Listing,
    actions: list[tuple[str, str]],
    *,
    inbox: str = "",
) -> dict[str, Any]:
    """Return what the list needs, in the page as in a fragment.

    ``inbox``: the address of the inbox, for links of other pages.
    """
    page = listing.page
    return {
        "made": listing.made,
        "page": page,
        "rows": listing.rows,
        "listing": listing,
        "states": states_of(parameters, listing.wanted),
        "wanted": listing.wanted,
        "reads": listing.reads,
        "reviews": request.user.has_perm("sessions_app.review_chat"),
        "actions": actions,
        "parameters": parameters,
        "is_empty": not (page.object_list or listing.wanted or listing.beside),
        "inbox": inbox,
    }


def waiting_shown(request: HttpRequest, conversations: int | None = None) -> needs.Waiting:
    """Return what waits for the user, which a request counts only once.

    ``conversations``: their number, where it is known.
    """
    key = "inbox.waiting"
    if key not in request.META:
        request.META[key] = needs.waiting_for(request.user, conversations)
    found: needs.Waiting = request.META[key]
    return found


def _version_of(row: chat_list.Row) -> tuple[Any, ...]:
    """Return all values of a row that the page displays or posts."""
    chat, last = row.chat, row.last
    return (
        (chat.pk, chat.shown_name, chat.whatsapp_chat, chat.is_group, chat.memory_enabled),
        chat.activity.last_at,
        (last.pk, last.kind, last.delivery_status, last.revoked_at, row.short) if last else None,
        (row.unread, row.reviewed, row.bookmarked, row.failed, row.unconfirmed),
        (row.paused, row.standing, row.opted_out, row.snoozed_until),
        (row.rule_name, row.due, row.due_at),
        (row.assignee.pk, row.assignee.get_username()) if row.assignee else None,
        [str(reason) for reason, _tone in row.reasons],
        [(label.pk, label.name, label.colour) for label in row.labels],
    )


# The tabs over the inbox, each with its number of conversations, and the states beside them.


MAX_IN_TAB = needs.MAX_WAITING
QUEUE = chat_list.Wanted(needs=True)
TABS: tuple[tuple[Any, Mapping[str, str]], ...] = (
    (gettext_lazy("Mine"), {"assigned": "me"}),
    (gettext_lazy("Unassigned"), {"assigned": "nobody"}),
    (gettext_lazy("All"), {}),
    (gettext_lazy("Needs you"), {"needs": "1"}),
)


@dataclass(frozen=True)
class Tab:
    """A link to a part of the inbox. ``count``: the number of its conversations, if counted."""

    title: Any
    address: str
    here: bool
    count: int | None = None

    @property
    def number(self) -> str:
        return "99+" if (self.count or 0) > 99 else str(self.count)


def tabs_of(wanted: chat_list.Wanted, count: Callable[[chat_list.Wanted], int]) -> list[Tab]:
    """Return the tabs; ``count`` counts the rows of one. They keep the state and nothing else.

    The queue doesn't: it is the same for all states.
    """
    here = _tab_of(wanted)
    tabs = []
    for title, narrowed in TABS:
        part, given = QUEUE, dict(narrowed)
        if "needs" not in narrowed:
            part = chat_list.Wanted(assigned=narrowed.get("assigned", ""), state=wanted.state)
            given |= {"state": wanted.state} if wanted.state else {}
        tabs.append(Tab(title, f"?{urlencode(given)}", narrowed == here, count(part)))
    return tabs


def states_of(parameters: QueryDict, wanted: chat_list.Wanted) -> Sequence[Tab]:
    """Return the states of the conversations in this tab; they keep all other filters."""
    return [
        Tab(title, _with_state(parameters, state), state == wanted.state)
        for state, title in STATE_NAMES
    ]


def _tab_of(wanted: chat_list.Wanted) -> Mapping[str, str] | None:
    """Return what narrows the tab that is open; None for filters that no tab has."""
    if wanted.needs:
        return {"needs": "1"} if wanted.assigned in ("", "me") else None
    if wanted.assigned in ("me", "nobody"):
        return {"assigned": wanted.assigned}
    return None if wanted.assigned else {}


def _with_state(given: QueryDict, state: str) -> str:
    parameters = given.copy()
    for name in ("p", "hits", "state"):
        parameters.pop(name, None)
    if state:
        parameters["state"] = state
    return f"?{parameters.urlencode()}"


# The list of the inbox as a file for spreadsheets.


def inbox_csv(request: HttpRequest) -> HttpResponse:
    """Return the filtered inbox, at most MAX_ROWS conversations. The audit log has it.

    The last message stands in it for those who may read messages.
    """
    user = instance(request.user, User)
    chats = list(chats_listed(request, wanted_of(request.GET))[:MAX_ROWS])
    rows = chat_list.inbox_rows(chats, user)
    reads = user.has_perm(chat_list.READ_MESSAGES)
    list_export_record(request, "chat", len(rows))
    return csv_of("inbox", _columns(reads=reads), rows)


def _columns(*, reads: bool) -> Iterator[Column]:
    yield "id", lambda row: row.chat.pk
    yield _("Name"), lambda row: row.chat.shown_name
    yield _("Address"), lambda row: row.chat.whatsapp_chat
    yield _("Provider"), lambda row: row.chat.get_provider_display()
    yield _("Last activity"), lambda row: row.chat.activity.last_at
    if reads:
        yield _("Last message"), lambda row: row.last.content if row.last else ""
    yield _("Unread"), lambda row: row.unread
    yield _("Reviewed"), lambda row: _yes(row.reviewed)
    yield _("Assigned to"), lambda row: row.assignee.get_username() if row.assignee else ""
    yield _("Labels"), lambda row: ", ".join(label.name for label in row.labels)
    yield _("Failed"), lambda row: row.failed
    yield _("Unconfirmed"), lambda row: row.unconfirmed
    yield _("Paused"), lambda row: _yes(row.paused)
    yield _("Access"), lambda row: Standing(row.standing).label if row.standing else ""
    yield _("Opted out"), lambda row: _yes(row.opted_out)
    yield _("Snoozed until"), lambda row: row.snoozed_until
    yield _("Due at"), lambda row: row.due_at


def _yes(value: bool) -> str:
    return _("yes") if value else _("no")
