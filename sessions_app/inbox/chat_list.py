"""List chats as staff work through them: the newest first, with their state.

A page makes as many queries for fifty chats as for one. After filtering, each query reads only the
page's own chats.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from memoryproject.foundation.admin_kit.list_csv import MAX_ROWS, BoundedPaginator
from sessions_app.conversations.chat_queries import with_name
from sessions_app.inbox import read_markers
from sessions_app.inbox.move_markers import (
    is_reviewed,
    pauses_in_force,
    snoozes_in_force,
    turns_gone_wrong,
)
from sessions_app.inbox.needs import needs_you, reasons_of
from sessions_app.limits.figures import chats_with_access
from sessions_app.models import (
    Assignment,
    Bookmark,
    Chat,
    ChatAccess,
    ChatLabel,
    ChatMark,
    Message,
    ReadMark,
    ReviewedMark,
    Snooze,
    Turn,
)
from sessions_app.models.messages import Role
from sessions_app.models.turns import TurnState
from sessions_app.presentation.message_kinds import TICKS, Kind, Tick, kind_of

OPEN, SNOOZED, REVIEWED = "open", "snoozed", "reviewed"
STATES = (OPEN, SNOOZED, REVIEWED)
CHATS_A_PAGE = 50
READ_MESSAGES = "sessions_app.view_message"
SHORT = 160
# How a rule's mark filters, and until when before its time an answer is due soon.
ANY, SOON, OVERDUE, TOLD = DUE = ("any", "soon", "overdue", "told")
SOON_WITHIN = timedelta(minutes=15)
# So many chats are counted at a time: a count of all takes longer than the page itself.
COUNTED = 1_000


@dataclass(frozen=True)
class Wanted:
    """The filters of a list; empty fields don't filter.

    ``assigned``: me, nobody, somebody, or a user's id. ``kind``: person or group. ``memory``: on or
    off. ``access``: a name of limits.FILTERS. ``active``: a message or a turn in this period, as
    the dashboard counts it. ``state``: a name of STATES; without one, and without a query, snoozed
    chats are left out. ``needs``: chats of the queue. ``due``: a name of DUE.
    """

    query: str = ""
    unread: bool = False
    bookmarked: bool = False
    failed: bool = False
    unreviewed: bool = False
    paused: bool = False
    assigned: str = ""
    label: int | None = None
    provider: str = ""
    number: str = ""
    kind: str = ""
    memory: str = ""
    access: str = ""
    state: str = ""
    needs: bool = False
    due: str = ""
    active: tuple[datetime, datetime] | None = None

    def __bool__(self) -> bool:
        return self != Wanted()


@dataclass(frozen=True)
class Row:
    """A chat in the list.

    ``snoozed_until`` is None if the chat is not put off (any more).
    ``rule_name``: the rule that tells of it; ``due_at``: when an answer is due.
    ``last``: its last message, for users who may read messages; ``short``: that one's beginning.
    ``unread`` counts messages that are new to the user, at most MAX_UNREAD. ``failed`` and
    ``unconfirmed`` count turns since the last review. ``reviewed`` is True if the chat is reviewed
    up to its end. ``reasons``: why it waits for staff, in words with their tones.
    """

    chat: Chat
    last: Message | None
    short: str
    kind: Kind | None
    tick: Tick | None
    unread: int
    reviewed: bool
    bookmarked: bool
    assignee: User | None
    failed: int
    unconfirmed: int
    paused: bool = False
    standing: str = ""
    opted_out: bool = False
    snoozed_until: datetime | None = None
    rule_name: str = ""
    due_at: datetime | None = None
    labels: Sequence[Any] = field(default=())
    reasons: Sequence[tuple[Any, str]] = field(default=())

    @property
    def unread_shown(self) -> str:
        return "99+" if self.unread > 99 else str(self.unread or "")

    @property
    def due(self) -> str:
        """Return whether an answer is overdue, due soon or due later; "" if none is due."""
        if self.due_at is None:
            return ""
        left = self.due_at - timezone.now()
        return OVERDUE if left <= timedelta() else SOON if left <= SOON_WITHIN else ANY

    @property
    def is_ours(self) -> bool:
        return self.last is not None and self.last.role == Role.ASSISTANT


def chats_wanted(
    wanted: Wanted, user: User, *, memory_default: bool, today: date
) -> QuerySet[Chat]:
    """Return the filtered chats, the newest first. ``today``: the business's day."""
    chats = Chat.objects.filter(activity__isnull=False).select_related("activity")
    if wanted.query:
        chats = chats.filter(with_name(wanted.query))
    if wanted.bookmarked:
        chats = chats.filter(Exists(Bookmark.objects.filter(chat=OuterRef("pk"), user=user)))
    if wanted.label is not None:
        chats = chats.filter(
            Exists(ChatLabel.objects.filter(chat=OuterRef("pk"), label=wanted.label))
        )
    if wanted.failed:
        chats = chats.filter(Exists(turns_gone_wrong().filter(chat=OuterRef("pk"))))
    if wanted.paused:
        chats = chats.filter(Exists(pauses_in_force().filter(chat=OuterRef("pk"))))
    if wanted.provider:
        chats = chats.filter(provider=wanted.provider)
    if wanted.number:
        chats = chats.filter(number_id=wanted.number)
    if wanted.kind:
        chats = chats.filter(is_group=wanted.kind == "group")
    if wanted.memory:
        on = wanted.memory == "on"
        own = Q(memory_enabled=on)
        chats = chats.filter(own | Q(memory_enabled=None) if on == memory_default else own)
    if wanted.access:
        chats = chats_with_access(chats, wanted.access, today=today)
    if wanted.needs:
        chats = chats.filter(needs_you())
    if wanted.due:
        chats = chats.filter(_due(wanted.due))
    if wanted.active:
        chats = chats.filter(_active(*wanted.active))
    if wanted.unread:
        chats = chats.filter(read_markers.chats_with_news(ReadMark, read_markers.FROM_PEOPLE, user))
    if wanted.unreviewed:
        chats = chats.filter(read_markers.chats_with_news(ReviewedMark, read_markers.SAID))
    chats = _in_state(chats, wanted)
    return _assigned(chats, wanted.assigned, user).order_by(
        "-activity__last_at", "-activity__chat_id"
    )


def _in_state(chats: QuerySet[Chat], wanted: Wanted) -> QuerySet[Chat]:
    snoozed = Exists(snoozes_in_force().filter(chat=OuterRef("pk")))
    if wanted.state == SNOOZED:
        return chats.filter(snoozed)
    reviewed = is_reviewed(among_few=wanted.needs)
    if wanted.state == REVIEWED:
        return chats.filter(reviewed)
    if wanted.state == OPEN:
        return chats.filter(~snoozed, ~reviewed)
    # Who searches for somebody finds them in any state.
    return chats if wanted.query else chats.filter(~snoozed)


def _due(which: str) -> Q:
    now = timezone.now()
    return {
        ANY: Q(mark__due_at__isnull=False),
        SOON: Q(mark__due_at__gt=now, mark__due_at__lte=now + SOON_WITHIN),
        OVERDUE: Q(mark__due_at__lte=now),
        TOLD: Q(mark__rule_name__gt=""),
    }[which]


def _active(start: datetime, end: datetime) -> Q:
    messages = Message.objects.filter(
        chat=OuterRef("pk"), received_at__gte=start, received_at__lt=end
    )
    turns = Turn.objects.filter(chat=OuterRef("pk"), created_at__gte=start, created_at__lt=end)
    return Q(Exists(messages)) | Q(Exists(turns))


class InboxPaginator(BoundedPaginator):
    """Counts further the further somebody goes. ``number``: the page that is opened."""

    def __init__(self, chats: QuerySet[Chat], number: int) -> None:
        super().__init__(chats, CHATS_A_PAGE)
        steps = (number + 1) * CHATS_A_PAGE // COUNTED + 1
        self.most = min(steps * COUNTED, MAX_ROWS)


def inbox_rows(chats: Sequence[Chat], user: User, *, with_reasons: bool = False) -> list[Row]:
    """Return the rows of these chats, with a constant number of queries."""
    keys = [chat.pk for chat in chats]
    reasons = reasons_of(keys) if with_reasons else {}
    lasts = read_markers.last_message_place(keys)
    of_messages = Message.objects.filter(pk__in=[key for key, _ in lasts.values()])
    rows = of_messages.select_related("session").defer("terms")
    messages = rows.in_bulk() if user.has_perm(READ_MESSAGES) else {}
    newest = {key: messages.get(message) for key, (message, _place) in lasts.items()}
    unread = unread_counts(keys, user)
    news = _since_review(keys)
    wrong = _wrong(keys)
    bookmarked = set(
        Bookmark.objects.filter(chat__in=keys, user=user).values_list("chat", flat=True)
    )
    paused = set(pauses_in_force().filter(chat__in=keys).values_list("chat", flat=True))
    access = ChatAccess.objects.filter(chat__in=keys).in_bulk()
    assigned = Assignment.objects.filter(chat__in=keys).select_related("assignee").in_bulk()
    snoozes = Snooze.objects.filter(chat__in=keys).in_bulk()
    asleep = set(snoozes_in_force().filter(chat__in=keys).values_list("chat", flat=True))
    marks = ChatMark.objects.filter(chat__in=keys).in_bulk()
    labels: dict[UUID, list[Any]] = {}
    for each in ChatLabel.objects.filter(chat__in=keys).select_related("label").order_by("pk"):
        labels.setdefault(each.chat_id, []).append(each.label)
    return [
        Row(
            chat=chat,
            last=last,
            short=last.content[:SHORT] if last else "",
            kind=kind_of(last.kind) if last else None,
            tick=TICKS.get(last.delivery_status) if last else None,
            unread=unread.get(chat.pk, 0),
            # What came back after a snooze is open again.
            reviewed=news.get(chat.pk) == 0 and chat.pk not in snoozes,
            bookmarked=chat.pk in bookmarked,
            assignee=assigned[chat.pk].assignee if chat.pk in assigned else None,
            failed=wrong.get((chat.pk, str(TurnState.FAILED)), 0),
            unconfirmed=wrong.get((chat.pk, str(TurnState.UNCONFIRMED)), 0),
            paused=chat.pk in paused,
            standing=access[chat.pk].standing if chat.pk in access else "",
            opted_out=chat.pk in access and access[chat.pk].opted_out_at is not None,
            snoozed_until=snoozes[chat.pk].until if chat.pk in asleep else None,
            rule_name=marks[chat.pk].rule_name if chat.pk in marks else "",
            due_at=marks[chat.pk].due_at if chat.pk in marks else None,
            labels=labels.get(chat.pk, []),
            reasons=reasons.get(chat.pk, ()),
        )
        for chat in chats
        for last in [newest.get(chat.pk)]
    ]


def _assigned(chats: QuerySet[Chat], who: str, user: User) -> QuerySet[Chat]:
    if who == "nobody":
        return chats.filter(assignment__isnull=True)
    if who == "somebody":
        return chats.filter(assignment__isnull=False)
    if who == "me":
        return chats.filter(assignment__assignee=user)
    return chats.filter(assignment__assignee=int(who)) if who else chats


def unread_counts(keys: Collection[UUID], user: User) -> dict[UUID, int]:
    """Return how many messages of these chats are new to the user, without chats that have none."""
    marks = {mark.chat_id: mark for mark in ReadMark.objects.filter(user=user, chat__in=keys)}
    places = {key: read_markers.place_marked(marks.get(key)) for key in keys}
    return read_markers.news_count(places, read_markers.FROM_PEOPLE, read_markers.MAX_UNREAD)


def _since_review(keys: Collection[UUID]) -> dict[UUID, int]:
    """Map each reviewed chat to 0 if it has no message since its review, else to 1."""
    marks = ReviewedMark.objects.filter(chat__in=keys)
    places = {mark.chat_id: read_markers.place_marked(mark) for mark in marks}
    return dict.fromkeys(places, 0) | read_markers.news_count(places, read_markers.SAID, 1)


def _wrong(keys: Collection[UUID]) -> Mapping[tuple[UUID, str], int]:
    found: dict[tuple[UUID, str], int] = {}
    for chat_id, state in turns_gone_wrong().filter(chat__in=keys).values_list("chat", "state"):
        found[chat_id, state] = found.get((chat_id, state), 0) + 1
    return found
