"""The queue *Needs you*: the chats that wait for staff with the reasons, and answers to review."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Greatest, Now

from memories_app.models import Memory, MemoryStatus, MergeProposal, ProposalState
from memoryproject.foundation.admin_kit.list_csv import MAX_ROWS
from memoryproject.foundation.tables import read_table
from sessions_app.conversations.chat_queries import handovers_open, without_reply
from sessions_app.inbox.move_markers import (
    pauses_in_force,
    snoozes_in_force,
    turns_gone_wrong,
    unreviewed,
)
from sessions_app.inbox.read_markers import FROM_PEOPLE, news_there
from sessions_app.models import (
    AnswerRating,
    AnswerResolved,
    ChatActivity,
    ChatMark,
    Message,
    Snooze,
    Turn,
)
from sessions_app.models.messages import ASKING, Role
from sessions_app.models.turns import BROADCAST, WAITING_STATES, TurnState
from sessions_app.recall.facade import NEAREST

# Failures and unknown questions are looked for in so many of the newest answers: a year's trouble
# is no work list, and a million rows is too many to read for one.
NEWEST = 1_000
# A longer list is shown in part, and more conversations that wait are counted as "99+".
MAX_RESULTS, MAX_WAITING = 1_000, 100
# A person who has waited so long for the assistant waits for somebody.
LATE = timedelta(minutes=5)
BAD, FAILED, UNKNOWN = "bad", "failed", "unknown"
# Each with the tone of its mark.
REASONS: dict[str, tuple[Any, str]] = {
    name: tuple(pair) for name, pair in read_table(__file__, "words.yaml")["reasons"].items()
}
AWAKE = "chat NOT IN ({snoozed})"


def needs_you() -> Q:
    """Match chats that wait for staff: for any reason of ``_waiting``, and not put off.

    A reply of staff and a review end it. The badge of the menu, Home and the inbox ask this alone.
    """
    found, *more = (rows.order_by().values("chat") for rows in _waiting().values())
    return Q(pk__in=found.union(*more, all=True)) & ~Q(pk__in=snoozes_in_force().values("chat"))


def reasons_of(chats: Collection[UUID]) -> dict[UUID, list[tuple[Any, str]]]:
    """Map each of these chats that waits to its reasons in words with their tones."""
    query = f"SELECT chat, why FROM ({{rows}}) AS waiting WHERE chat = ANY(%s) AND {AWAKE}"  # noqa: S608 constants only
    found: dict[UUID, list[tuple[Any, str]]] = {}
    rows = set(_rows_of(query, list(chats)))
    for name, reason in REASONS.items():
        for chat in (chat for chat, why in rows if why == name):
            found.setdefault(chat, []).append(reason)
    return found


def chats_waiting() -> list[UUID]:
    """Return the chats of ``needs_you``, those with the latest message first, at most MAX_ROWS."""
    query = f"""
    SELECT chat_id FROM {ChatActivity._meta.db_table} AS activity
    CROSS JOIN LATERAL (SELECT activity.chat_id AS chat) AS of_chat
    WHERE chat_id IN (SELECT chat FROM ({{rows}}) AS waiting) AND {AWAKE}
    ORDER BY last_at DESC, chat_id DESC LIMIT {MAX_ROWS}
    """  # noqa: S608 constants only
    return [key for (key,) in _rows_of(query)]


@dataclass(frozen=True)
class Waiting:
    """What waits for a staff member, as far as they may see it; each at most MAX_WAITING."""

    conversations: int = 0
    suggested: int = 0
    proposals: int = 0

    @property
    def total(self) -> int:
        return min(self.conversations + self.suggested + self.proposals, MAX_WAITING)


def counted(number: int, most: int = MAX_WAITING) -> int | str:
    """Return a count that ends at ``most`` as it is shown."""
    return number if number < most else f"{most - 1}+"


def waiting_for(user: Any, conversations: int | None = None) -> Waiting:
    """Count the rows of the queue: the one number of the menu's badge, Home and the tab.

    ``conversations``: their number, where it is known.
    """
    chats = 0
    if user.has_perm("sessions_app.view_chat"):
        chats = conversations_count() if conversations is None else conversations
    if not user.has_perm("memories_app.view_memory"):
        return Waiting(chats)
    suggested = memories_proposed()[:MAX_WAITING].count()
    if not user.has_perm("memories_app.view_mergeproposal"):
        return Waiting(chats, suggested)
    return Waiting(chats, suggested, proposals_open()[:MAX_WAITING].count())


def memories_proposed() -> QuerySet[Memory]:
    return Memory.objects.filter(status=MemoryStatus.PROPOSED).order_by("-created_at")


def proposals_open() -> QuerySet[MergeProposal]:
    return MergeProposal.objects.filter(state=ProposalState.OPEN).order_by("-created_at")


def conversations_count() -> int:
    """Count the chats of ``needs_you``, at most MAX_WAITING. Every page of staff asks it."""
    # A chat may wait for several reasons.
    read = 4 * MAX_WAITING
    query = f"""
    SELECT count(DISTINCT activity.chat_id), count(*)
    FROM (SELECT chat FROM ({{rows}}) AS waiting LIMIT {read}) AS few
    LEFT JOIN {ChatActivity._meta.db_table} AS activity ON activity.chat_id = few.chat AND {AWAKE}
    """  # noqa: S608 constants only
    [(chats, rows)] = _rows_of(query)
    number = len(chats_waiting()) if chats < MAX_WAITING and rows == read else chats
    return min(number, MAX_WAITING)


def _rows_of(query: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Return the rows of a query over ``rows`` of (chat, why) and the ``snoozed`` chats."""
    rows, given, snoozed, more = _parts(NEWEST)
    with connection.cursor() as cursor:
        cursor.execute(query.format(rows=rows, snoozed=snoozed), [*given, *parameters, *more])
        return cursor.fetchall()


@cache
def _parts(_newest: int) -> tuple[str, list[Any], str, list[Any]]:
    """Return the parts of queries with their parameters, which never change.

    Django needs longer to write them than PostgreSQL to answer.
    """
    parts, given = [], []
    for why, rows in _waiting().items():
        query, parameters = rows.order_by().values("chat").query.sql_with_params()
        parts.append(f"SELECT chat, '{why}' AS why FROM ({query}) AS {why}_rows")  # noqa: S608
        given += parameters
    snoozed, more = snoozes_in_force().values("chat").query.sql_with_params()
    return " UNION ALL ".join(parts), given, snoozed, [*more]


def _waiting() -> dict[str, QuerySet[Any]]:
    """Return the few rows for which chats wait, by the reason; never all chats are read."""
    # Two reasons, because each has an index of its own.
    late = Turn.objects.filter(~to_many(), state__in=WAITING_STATES, created_at__lt=Now() - LATE)
    answered = Turn.objects.filter(chat=OuterRef("chat"), id__gt=OuterRef("pk"), state="sent")
    missed = Turn.objects.filter(state__in=(TurnState.MISSED, TurnState.DEFERRED))
    opened = AnswerRating.objects.filter(is_open=True)
    rated = opened.filter(turn=OuterRef("pk")).order_by("-rated_at").values("rated_at")[:1]
    over_at = Coalesce("finished_at", "created_at")
    bad = Turn.objects.filter(pk__in=opened.values("turn"))
    bad = bad.annotate(over_at=Greatest(over_at, Subquery(rated)))
    unknown = Turn.objects.filter(is_unknown(), ~is_seen(), pk__in=_newest())
    spoken = Message.objects.filter(chat=OuterRef("chat"), role__in=(Role.USER, Role.ASSISTANT))
    last_word = Subquery(spoken.order_by("-received_at", "-order_num").values("role")[:1])
    paused = pauses_in_force().filter(news_there(FROM_PEOPLE, chat="chat"))
    return {
        "wrong": turns_gone_wrong(),
        "paused": paused.alias(last_word=last_word).filter(last_word=Role.USER),
        "marked": ChatMark.objects.filter(Q(rule_name__gt="") | Q(due_at__lte=Now())),
        "asked": unreviewed(handovers_open(), "created_at"),
        "late": without_reply(unreviewed(late, "created_at")),
        "missed": without_reply(unreviewed(missed.filter(~Exists(answered)), "created_at")),
        BAD: without_reply(unreviewed(bad, "over_at")),
        UNKNOWN: without_reply(unreviewed(unknown.annotate(over_at=over_at), "over_at")),
        "back": Snooze.objects.all(),
    }


# The answers to review.


def to_review_ids() -> list[int]:
    """Return the ids of the answers to review, newest first, at most MAX_RESULTS.

    They are those that staff rated bad; and, among the newest answers that nobody rated or
    resolved, those that failed, and those to a question for which nothing was recalled.
    """
    bad = AnswerRating.objects.filter(is_open=True).order_by("-turn")
    ids = set(bad.values_list("turn", flat=True)[:MAX_RESULTS])
    doubtful = Turn.objects.filter(has_failed() | is_unknown(), ~is_seen(), pk__in=_newest())
    ids.update(doubtful.order_by("-pk").values_list("pk", flat=True)[:MAX_RESULTS])
    return sorted(ids, reverse=True)[:MAX_RESULTS]


def _newest() -> QuerySet[Turn, dict[str, Any]]:
    # A broadcast's messages would take all the places. ``by_hand`` spares reading most contexts.
    return Turn.objects.exclude(to_many(), by_hand=True).order_by("-pk").values("pk")[:NEWEST]


def to_many() -> Q:
    """Match messages of broadcasts: what becomes of them stands on the broadcast's page."""
    return Q(context__has_key=BROADCAST)


def has_failed() -> Q:
    return Q(state=TurnState.FAILED) & ~to_many()


def is_unknown() -> Q:
    """Match answers of a model to a question for which no memory and no message was recalled.

    Cards don't count: they are chosen by time and not by the question. Nor do the nearest texts
    below the threshold.
    """
    nothing = ~Q(replay__recalled__contains=[{"source": "memory"}]) & ~Q(
        replay__recalled__contains=[{"source": "message"}]
    )
    # They stand behind what is above it.
    nothing |= Q(**{f"replay__recalled__0__{NEAREST}": True})
    question = Q(state=TurnState.SENT, by_hand=False, message__terms__contains=[ASKING])
    return question & Q(replay__isnull=False) & ~Q(replay__model="") & nothing


def is_seen() -> Q:
    """Match answers that staff rated, or resolved since they ended."""
    rated = AnswerRating.objects.filter(turn=OuterRef("pk"))
    ended = Coalesce(OuterRef("finished_at"), OuterRef("created_at"))
    resolved = AnswerResolved.objects.filter(turn=OuterRef("pk"), resolved_at__gte=ended)
    return Q(Exists(rated)) | Q(Exists(resolved))
