"""The queue *Needs you*: the chats that wait for staff with the reasons, and answers to review."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Greatest, Now
from django.utils.translation import gettext_lazy

from sessions_app.conversations.chat_queries import handovers_open, without_reply
from sessions_app.inbox.move_markers import needs_attention, snoozes_in_force, unreviewed
from sessions_app.models import AnswerRating, AnswerResolved, Snooze, Turn
from sessions_app.models.messages import ASKING
from sessions_app.models.turns import BROADCAST, WAITING_STATES, TurnState
from sessions_app.recall.facade import NEAREST

# Failures and unknown questions are looked for in so many of the newest answers: a year's trouble
# is no work list, and a million rows is too many to read for one.
NEWEST = 1_000
# A longer list is shown in part.
MAX_RESULTS = 1_000
# A person who has waited so long for the assistant waits for somebody.
LATE = timedelta(minutes=5)
BAD, FAILED, UNKNOWN = "bad", "failed", "unknown"
# Each with the tone of its mark. Failed answers and pauses have marks of their own in the list.
REASONS = {
    "asked": (gettext_lazy("asked for a person"), "bad"),
    "late": (gettext_lazy("answer is late"), "bad"),
    "missed": (gettext_lazy("not answered"), "bad"),
    BAD: (gettext_lazy("rated bad"), "warn"),
    UNKNOWN: (gettext_lazy("unknown question"), "warn"),
    "back": (gettext_lazy("back from snooze"), ""),
}


def needs_you() -> Q:
    """Match chats that wait for staff: those that need attention, and those of ``_turns``.

    A reply of staff, a review and a snooze end it. Two queries are made at once.
    """
    waiting = needs_attention()
    for turns in _turns().values():
        waiting |= Q(pk__in=turns.order_by().values("chat"))
    return waiting & ~Q(pk__in=snoozes_in_force().values("chat"))


def reasons_of(chats: Collection[UUID]) -> dict[UUID, list[tuple[Any, str]]]:
    """Map each of these chats that waits to its reasons in words with their tones."""
    asleep = set(snoozes_in_force().filter(chat__in=chats).values_list("chat", flat=True))
    handed_over = unreviewed(handovers_open(), "created_at")
    waiting: dict[str, Any] = {"asked": handed_over, **_turns(), "back": Snooze.objects.all()}
    found: dict[UUID, list[tuple[Any, str]]] = {}
    for name, rows in waiting.items():
        for chat in set(rows.filter(chat__in=chats).values_list("chat", flat=True)) - asleep:
            found.setdefault(chat, []).append(REASONS[name])
    return found


def _turns() -> dict[str, QuerySet[Turn]]:
    """Return the turns by the reason for which their chats wait, beside those in ``_waiting``."""
    # Two reasons, because each has an index of its own.
    late = Turn.objects.filter(~to_many(), state__in=WAITING_STATES, created_at__lt=Now() - LATE)
    answered = Turn.objects.filter(chat=OuterRef("chat"), id__gt=OuterRef("pk"), state="sent")
    missed = Turn.objects.filter(state__in=(TurnState.MISSED, TurnState.DEFERRED))
    rated = AnswerRating.objects.filter(turn=OuterRef("pk"), is_open=True).order_by("-rated_at")
    review = Turn.objects.filter(pk__in=to_review_ids()).annotate(
        over_at=Greatest(
            Coalesce("finished_at", "created_at"), Subquery(rated.values("rated_at")[:1])
        )
    )
    bad = Q(pk__in=AnswerRating.objects.filter(is_open=True).values("turn"))
    left = without_reply(unreviewed(review, "over_at"))
    return {
        "late": without_reply(unreviewed(late, "created_at")),
        "missed": without_reply(unreviewed(missed.filter(~Exists(answered)), "created_at")),
        BAD: left.filter(bad),
        UNKNOWN: left.filter(~bad).exclude(state=TurnState.FAILED),
    }


# The answers to review.


def to_review_ids() -> list[int]:
    """Return the ids of the answers to review, newest first, at most MAX_RESULTS.

    They are those that staff rated bad; and, among the newest answers that nobody rated or
    resolved, those that failed, and those to a question for which nothing was recalled.
    """
    bad = AnswerRating.objects.filter(is_open=True).order_by("-turn")
    ids = set(bad.values_list("turn", flat=True)[:MAX_RESULTS])
    # A broadcast's messages would take all the places. ``by_hand`` spares reading most contexts.
    newest = Turn.objects.exclude(to_many(), by_hand=True).order_by("-pk").values("pk")[:NEWEST]
    doubtful = Turn.objects.filter(has_failed() | is_unknown(), ~is_seen(), pk__in=newest)
    ids.update(doubtful.order_by("-pk").values_list("pk", flat=True)[:MAX_RESULTS])
    return sorted(ids, reverse=True)[:MAX_RESULTS]


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
