"""The questions that the assistant couldn't answer from what it knows."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
from django.db.models import Exists, OuterRef, Q, QuerySet
from numpy.typing import NDArray

from memories_app.facts.text_diff import shape_of
from memoryproject.foundation.integrations.embedders.base import Calibration
from memoryproject.foundation.text.characters import fold
from sessions_app.inbox.needs import is_seen, is_unknown
from sessions_app.models import AnswerRating, MessageEmbedding, Turn
from sessions_app.models.messages import ASKING
from sessions_app.models.trials import RatingReason
from sessions_app.models.turns import TurnState

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


# Group questions by topic: by the meaning of their vectors, and by the words that they share.


# Questions are about one topic if their vectors say so with this probability, or if so much of
# their words, by weight, is in the other one. Tried out on questions to shops in both languages.
MIN_PROBABILITY = 0.7
MIN_SHARED = 0.45
# As if so many more questions were there: of a few, no word is rare.
SMOOTHING = 20

Floats: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]


def questions_group(questions: Sequence[Question], calibration: Calibration) -> list[QuestionGroup]:
    """Return the groups: those that most people asked about first, then the newest.

    A group is a question with all that are alike to it and in no group yet; the question with most
    of them is next. calibration: of the model of the vectors.
    """
    by_key: dict[str, list[Question]] = defaultdict(list)
    for question in sorted(questions, key=lambda each: (each.asked_at, each.turn_id), reverse=True):
        by_key[folded_question(question.text)].append(question)
    wordings = list(by_key.values())
    alike = _alike([each[0] for each in wordings], calibration)
    stars = _stars(alike, np.array([len(each) for each in wordings], dtype=np.float32))
    groups = [_group(places, wordings) for places in stars]
    return sorted(groups, key=lambda group: (group.people, group.last), reverse=True)


def _stars(alike: Mask, times: Floats) -> list[list[int]]:
    """Return the groups as places, the central one first. times: how often each was asked."""
    left = np.ones(len(alike), dtype=bool)
    found = []
    # Of equals the one that was asked most often in these words.
    size = alike @ times + times / 1_000
    while left.any():
        centre = int(np.argmax(np.where(left, size, -1)))
        members = np.flatnonzero(alike[centre] & left).tolist()
        found.append([centre, *(place for place in members if place != centre)])
        left[members] = False
        size -= alike[:, members] @ times[members]
    return found


def _group(places: Sequence[int], wordings: Sequence[Sequence[Question]]) -> QuestionGroup:
    questions = [question for place in places for question in wordings[place]]
    questions.sort(key=lambda each: (each.asked_at, each.turn_id), reverse=True)
    return QuestionGroup(wordings[places[0]][0], tuple(questions))


def _alike(questions: Sequence[Question], calibration: Calibration) -> Mask:
    """Say of each two questions whether they are about one topic."""
    by_words = _shared_words(questions) >= MIN_SHARED
    alike: Mask = by_words | (_by_vectors(questions, calibration) >= MIN_PROBABILITY)
    np.fill_diagonal(alike, True)
    return alike


def _by_vectors(questions: Sequence[Question], calibration: Calibration) -> Floats:
    """Return the probabilities that two questions are about the same; 0 without vectors."""
    found = np.zeros((len(questions), len(questions)), dtype=np.float32)
    places = [place for place, each in enumerate(questions) if each.vector is not None]
    if places:
        vectors = np.array([questions[place].vector for place in places], dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        apart = calibration.slope * (vectors @ vectors.T - calibration.midpoint)
        found[np.ix_(places, places)] = 1 / (1 + np.exp(-apart))
    return found


def _shared_words(questions: Sequence[Question]) -> Floats:
    """Return the share of the words of each two questions that both have, rare ones counting more.

    It is the mean of both shares. A word is also found as a form of the other's words.
    """
    own, forms = defaultdict(list), defaultdict(list)
    for place, question in enumerate(questions):
        for word in question.words:
            own[word].append(place)
        variants = {term[1:] for term in question.terms if term.startswith(VARIANT)}
        for word in question.words | variants:
            forms[word].append(place)
    shared = np.zeros((len(questions), len(questions)), dtype=np.float32)
    whole = np.full(len(questions), 1e-6, dtype=np.float32)
    for word, places in own.items():
        weight = math.log(1 + (len(questions) + SMOOTHING) / (len(places) + 1))
        whole[places] += weight
        shared[np.ix_(places, forms[word])] += weight
    shares = shared / whole[:, None]
    return np.minimum((shares + shares.T) / 2, 1)


# Questions of people, and those of them that are about one topic.


# How terms of the index begin that stand for forms of a word.
VARIANT = "~"
_PUNCTUATION = re.compile(r"\W+")


@dataclass(frozen=True)
class Question:
    """A question that somebody asked. ``terms``: those of its message; ``why``: see the caller."""

    turn_id: int
    chat_id: UUID
    text: str
    asked_at: datetime
    why: str = ""
    is_open: bool = True
    terms: Sequence[str] = field(default=(), repr=False)
    vector: Sequence[float] | None = field(default=None, repr=False)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that tell what it is about; none for small talk."""
        return shape_of(self.text).words


@dataclass(frozen=True)
class QuestionGroup:
    """Questions about one topic, the newest first. ``label``: the most central one."""

    label: Question
    questions: tuple[Question, ...]

    @property
    def people(self) -> int:
        return len({question.chat_id for question in self.questions})

    @property
    def last(self) -> datetime:
        return self.questions[0].asked_at

    @property
    def examples(self) -> list[Question]:
        """Return one question of each wording, the newest first."""
        by_key: dict[str, Question] = {}
        for question in self.questions:
            by_key.setdefault(folded_question(question.text), question)
        return list(by_key.values())


def folded_question(text: str) -> str:
    """Return the text without differences that a reader ignores."""
    return _PUNCTUATION.sub(" ", fold(text)).strip()
