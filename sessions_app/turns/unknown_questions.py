"""The questions that the assistant couldn't answer from what it knows."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import JSONObject
from pgvector.django import CosineDistance

from memories_app.facts.text_diff import shape_of
from memories_app.models import MemoryEmbedding, MemoryStatus, Visibility
from memoryproject.foundation.integrations.embedders.base import Calibration
from memoryproject.foundation.text.characters import fold
from sessions_app.inbox.needs import is_seen, is_unknown
from sessions_app.models import AnswerRating, Message, MessageEmbedding, Turn
from sessions_app.models.messages import ASKING, BY_PHONE
from sessions_app.models.trials import RatingReason
from sessions_app.models.turns import TEMPLATE, TurnState

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# So many of the newest answers of a period are looked at, and so many questions are grouped.
NEWEST = 20_000
MAX_QUESTIONS = 5_000
# Staff reply within so long.
REPLY_WITHIN = timedelta(days=2)
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
    turns = {turn.message_id: turn for turn in _unanswered(newest[:NEWEST], with_closed)}
    questions = message_questions([t.message for t in turns.values() if t.message], model_id)
    topical = [_answered(turns[question.message_id], question) for question in questions]
    is_whole = not newest[NEWEST : NEWEST + 1].exists()
    return UnknownQuestions(questions_group(topical, calibration), is_whole)


def _newest(start: datetime, end: datetime) -> QuerySet[Turn, int]:
    # By the index of times, which ends where the period begins.
    within = Turn.objects.filter(created_at__gte=start, created_at__lt=end, by_hand=False)
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
    columns = ("content", "terms", "chat_id", "received_at")
    own = ("chat_id", "state", "created_at", *(f"message__{column}" for column in columns))
    return found.select_related("message").only(*own).order_by("-pk")[:MAX_QUESTIONS]


def nearest_memories(questions: Sequence[Question], model_id: str) -> dict[Any, Any]:
    """Return of what everyone may know the nearest to each question, by the question's message.

    Each with ``memory_id`` and ``content``; one query. A question without a vector has none.
    """
    known = MemoryEmbedding.objects.filter(
        model=model_id, memory__status=MemoryStatus.ACTIVE, memory__visibility=Visibility.PUBLIC
    ).annotate(apart=CosineDistance("vector", OuterRef("vector")))
    fields = JSONObject(memory_id="memory_id", content="memory__content")
    nearest = Subquery(known.order_by("apart").values(found=fields)[:1])
    vectors = MessageEmbedding.objects.filter(message__in=[each.message_id for each in questions])
    found = vectors.filter(model=model_id).annotate(nearest=nearest).exclude(nearest=None)
    return dict(found.values_list("message", "nearest"))


def staff_replies(questions: Sequence[Question]) -> dict[int, str]:
    """Return staff's first reply after each question that has one, by the answer; one query."""
    later = Message.objects.filter(
        Q(replied_turn__by_hand=True) | Q(metadata__has_key=BY_PHONE),
        chat=OuterRef("chat"),
        received_at__gt=OuterRef("created_at"),
        received_at__lte=OuterRef("created_at") + REPLY_WITHIN,
    ).exclude(Q(content="") | Q(replied_turn__context__has_key=TEMPLATE))
    reply = Subquery(later.order_by("received_at").values("content")[:1])
    turns = Turn.objects.filter(pk__in=[each.turn_id for each in questions]).annotate(staffs=reply)
    return dict(turns.exclude(staffs=None).values_list("pk", "staffs"))


def message_questions(messages: Sequence[Message], model_id: str) -> list[Question]:
    """Return the messages that say what they are about, as questions; one query."""
    found = MessageEmbedding.objects.filter(message__in=messages, model=model_id)
    vectors = dict(found.values_list("message", "vector"))
    questions = [
        Question(
            chat_id=each.chat_id,
            message_id=each.pk,
            text=each.content,
            asked_at=each.received_at,
            terms=each.terms,
            vector=vectors.get(each.pk),
        )
        for each in messages
    ]
    return [question for question in questions if question.words]


def _answered(turn: Turn, question: Question) -> Question:
    """Return the question with what is known of its answer."""
    found: Any = turn
    why = HANDED_OVER if turn.state == TurnState.HELD else UNKNOWN
    return replace(
        question,
        turn_id=turn.pk,
        asked_at=turn.created_at,
        why=RATED_BAD if found.rated_bad else why,
        is_open=bool(found.rated_open or not found.closed),
    )


# Group questions by meaning: by their vectors, and where there are none by the words they share.


# Groups whose questions are about the same with this mean probability are joined: a cosine of 0.54
# of the default embedder. Of 104 questions to shops in English, Hebrew, Spanish and Arabic, about
# twelve topics, 99 % of the pairs in one group belong together, and 43 % of those that belong
# together are found; within one language 67 % and 56 %.
MIN_PROBABILITY = 0.95
# By words alone, so much of them, by weight, is in the other one.
MIN_SHARED = 0.45
# As if so many more questions were there: of a few, no word is rare.
SMOOTHING = 20


def questions_group(questions: Sequence[Question], calibration: Calibration) -> list[QuestionGroup]:
    """Return the groups: those that most people asked about first, then the newest.

    calibration: of the model of the vectors.
    """
    by_key: dict[str, list[Question]] = defaultdict(list)
    for question in sorted(questions, key=lambda each: (each.asked_at, each.turn_id), reverse=True):
        by_key[folded_question(question.text)].append(question)
    wordings = list(by_key.values())
    alike = likeness([each[0] for each in wordings], calibration)
    groups = [_group(places, wordings) for places in _joined(alike)]
    return sorted(groups, key=lambda group: (group.people, group.last), reverse=True)


def _joined(alike: Floats) -> list[list[int]]:
    """Return the groups as places; the matrix, with 1 where two are just alike, is changed.

    The two groups that are most alike are joined, by the mean of their questions, until none are
    alike: along chains of nearest neighbours, which takes quadratic time (Murtagh, 1983).
    """
    import numpy as np  # noqa: PLC0415 slow

    groups = [[place] for place in range(len(alike))]
    np.fill_diagonal(alike, -1)
    chain: list[int] = []
    left = set(range(len(alike)))
    while left:
        chain = chain or [min(left)]
        last = chain[-1]
        row = alike[last]
        nearest = int(row.argmax())
        if len(chain) > 1 and row[chain[-2]] >= row[nearest]:
            nearest = chain[-2]
        if row[nearest] < 1:
            # Joining others brings none of them nearer: this group is complete.
            left.remove(chain.pop())
            alike[last] = alike[:, last] = -1
        elif len(chain) > 1 and nearest == chain[-2]:
            del chain[-2:]
            sizes = len(groups[last]), len(groups[nearest])
            mean = np.average(alike[[last, nearest]], axis=0, weights=sizes)
            alike[last] = alike[:, last] = mean
            alike[nearest] = alike[:, nearest] = alike[last, last] = -1
            groups[last] += groups[nearest]
            groups[nearest] = []
            left.remove(nearest)
        else:
            chain.append(nearest)
    return [group for group in groups if group]


def _group(places: Sequence[int], wordings: Sequence[Sequence[Question]]) -> QuestionGroup:
    questions = [question for place in places for question in wordings[place]]
    questions.sort(key=lambda each: (each.asked_at, each.turn_id), reverse=True)
    label = max((wordings[place] for place in places), key=len)[0]
    return QuestionGroup(label, tuple(questions))


def likeness(questions: Sequence[Question], calibration: Calibration) -> Floats:
    """Return for each two questions how alike they are; from 1 on they are about the same."""
    import numpy as np  # noqa: PLC0415 slow

    has_vector = np.array([each.vector is not None for each in questions], dtype=bool)
    found = np.zeros((len(questions), len(questions)), dtype=np.float32)
    if not has_vector.all():
        found = _shared_words(questions) / np.float32(MIN_SHARED)
    places = np.flatnonzero(has_vector).tolist()
    if places:
        vectors = np.array([questions[place].vector for place in places], dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        least = calibration.midpoint + math.log(1 / (1 / MIN_PROBABILITY - 1)) / calibration.slope
        found[np.ix_(places, places)] = vectors @ vectors.T / np.float32(least)
    return found


def _shared_words(questions: Sequence[Question]) -> Floats:
    """Return the share of the words of each two questions that both have, rare ones counting more.

    It is the mean of both shares. A word is also found as a form of the other's words.
    """
    import numpy as np  # noqa: PLC0415 slow

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

    chat_id: UUID
    text: str
    asked_at: datetime
    turn_id: int = 0
    why: str = ""
    is_open: bool = True
    message_id: UUID | None = None
    terms: Sequence[str] = field(default=(), repr=False)
    vector: Sequence[float] | None = field(default=None, repr=False)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that tell what it is about; none for small talk."""
        return shape_of(self.text).words


@dataclass(frozen=True)
class QuestionGroup:
    """Questions about one topic, the newest first. ``label``: in the words used most often."""

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
