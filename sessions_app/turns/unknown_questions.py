"""The questions that the assistant couldn't answer from what it knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from memoryproject.foundation.integrations.embedders.base import Calibration
from sessions_app.models import AnswerRating, MessageEmbedding, Turn
from sessions_app.models.messages import ASKING
from sessions_app.models.ratings import RatingReason
from sessions_app.models.turns import TurnState
from sessions_app.turns.answer_review import is_seen, is_unknown
from sessions_app.turns.questions import Question, QuestionGroup

# So many of the newest answers of a period are looked at, and so many questions are grouped.
NEWEST = 3_000
MAX_QUESTIONS = 2_000
UNKNOWN, HANDED_OVER, RATED_BAD = "unknown", "handed_over", "rated_bad"
# Those that say that the assistant lacked something to know.
_LACKING = (
    "",
    RatingReason.WRONG,
    RatingReason.OUTDATED,
    RatingReason.UNKNOWN,
    RatingReason.BESIDE,
    RatingReason.PERSON,
)


@dataclass(frozen=True)
class UnknownQuestions:
    """``is_whole``: whether all answers of the period were looked at."""

    groups: list[QuestionGroup]
    is_whole: bool

    @property
    def questions(self) -> int:
        return sum(len(group.questions) for group in self.groups)


def unknown_questions(
    *,
    start: datetime,
    end: datetime,
    model_id: str,
    calibration: Calibration,
    with_closed: bool = False,
) -> UnknownQuestions:
    """Return the questions of a period by topic, in a constant number of queries.

    They are those for which nothing was recalled, those to a person instead of the assistant, and
    those whose answer staff rated bad because it lacked something. with_closed: also those that
    staff resolved or ignored. model_id, calibration: of the vectors in use.
    """
    from sessions_app.turns.question_groups import questions_group  # noqa: PLC0415 numpy is slow

    newest = _newest(start, end)
    turns = list(_unanswered(newest[:NEWEST], with_closed))
    vectors = _vectors([turn.message_id for turn in turns if turn.message_id], model_id)
    questions = [_question(turn, vectors) for turn in turns]
    topical = [question for question in questions if question.words]
    is_whole = not newest[NEWEST : NEWEST + 1].exists()
    return UnknownQuestions(questions_group(topical, calibration), is_whole)


def _newest(start: datetime, end: datetime) -> QuerySet[Turn, int]:
    # By the index of times, which ends where the period begins.
    within = Turn.objects.filter(created_at__gte=start, created_at__lt=end)
    return within.order_by("-created_at").values_list("pk", flat=True)


def _unanswered(turn_ids: QuerySet[Turn, int], with_closed: bool) -> QuerySet[Turn]:
    rated = AnswerRating.objects.filter(turn=OuterRef("pk"), is_good=False, reason__in=_LACKING)
    handed_over = Q(state=TurnState.HELD, message__terms__contains=[ASKING])
    doubtful = is_unknown() | handed_over
    if with_closed:
        wanted = doubtful | Q(Exists(rated))
    else:
        wanted = (doubtful & ~is_seen()) | Q(Exists(rated.filter(is_open=True)))
    found = Turn.objects.filter(
        wanted, pk__in=turn_ids, message__isnull=False, message__revoked_at=None
    )
    found = found.annotate(
        closed=is_seen(), rated_bad=Exists(rated), rated_open=Exists(rated.filter(is_open=True))
    )
    # A command isn't a question, and a picture without words says nothing.
    found = found.exclude(message__content="").exclude(message__content__startswith="/")
    columns = ("chat_id", "state", "created_at", "message__content", "message__terms")
    return found.select_related("message").only(*columns).order_by("-pk")[:MAX_QUESTIONS]


def _vectors(message_ids: Sequence[UUID], model_id: str) -> dict[UUID, Sequence[float]]:
    found = MessageEmbedding.objects.filter(message__in=message_ids, model=model_id)
    return dict(found.values_list("message", "vector"))


def _question(turn: Turn, vectors: dict[UUID, Sequence[float]]) -> Question:
    found: Any = turn
    message = found.message
    why = HANDED_OVER if turn.state == TurnState.HELD else UNKNOWN
    return Question(
        turn_id=turn.pk,
        chat_id=turn.chat_id,
        text=message.content,
        asked_at=turn.created_at,
        why=RATED_BAD if found.rated_bad else why,
        is_open=bool(found.rated_open or not found.closed),
        terms=message.terms,
        vector=vectors.get(message.pk),
    )
