"""What a change of memory would change: recent questions are recalled without it and with it."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memories_app.facts.validation import MAX_CONTENT
from memoryproject.foundation.integrations.embedders.base import (
    Embedder,
    embed_covered,
    embed_queries,
)
from sessions_app.models import AnswerRating, Turn, TurnState
from sessions_app.recall.facade import Hit
from sessions_app.turns.compose_prompt import recall_today
from sessions_app.turns.turn_dependencies import Dependencies

MAX_QUESTIONS = 40
# The memory's scope is locked while the questions are recalled with the change.
MAX_SECONDS = 4.0
# So many of the newest answers are looked at for questions that differ.
LOOKED_AT = 400
COMMAND = "/"


@dataclass(frozen=True)
class Difference:
    """A question for which something else would be recalled."""

    turn: Turn
    before: Sequence[Hit]
    after: Sequence[Hit]


@dataclass(frozen=True)
class ChangeTrial:
    """``questions``: how many were recalled both ways; or none was, as the change concerns what a
    model answers (``recalls`` is false)."""

    questions: int
    differences: Sequence[Difference]
    recalls: bool = True


@dataclass
class KeptVectors:
    """An embedder that makes each vector once, so that what was made needs no call again."""

    embedder: Embedder
    _kept: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.embedder, name)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return self._made("text", texts, self.embedder.embed)

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        return self._made("query", texts, lambda new: embed_queries(self.embedder, new))

    def _made(
        self, kind: str, texts: Sequence[str], make: Callable[[list[str]], list[list[float]]]
    ) -> list[list[float]]:
        new = [text for text in dict.fromkeys(texts) if (kind, text) not in self._kept]
        if new:
            made = zip(new, make(new), strict=True)
            self._kept |= {(kind, text): vector for text, vector in made}
        return [self._kept[kind, text] for text in texts]


def change_try(
    change: Callable[[Embedder], object],
    *,
    content: str,
    turns: Sequence[Turn],
    dependencies: Dependencies,
    changed: Mapping[str, Any] = MappingProxyType({}),
) -> ChangeTrial:
    """Make a change, recall the turns' questions, and take the change back.

    ``change`` stores ``content`` and gets the embedder that it has to use; its errors are passed
    on. ``changed``: rules of answers by name. Nothing is stored, sent or recorded.
    """
    kept = KeptVectors(dependencies.embedder)
    # A provider may make the vectors: none is called while the transaction is open.
    if content and len(content) <= MAX_CONTENT:
        embed_covered(kept, [content])
    with_kept = replace(dependencies, embedder=kept)
    before = _recalled(turns, with_kept)
    with transaction.atomic():
        change(kept)
        changed_too = replace(with_kept, rules=replace(dependencies.rules, **changed))
        after = _recalled(turns[: len(before)], changed_too)
        transaction.set_rollback(True)
    pairs = zip(turns, before, after, strict=False)
    differences = [Difference(*each) for each in pairs if _texts(each[1]) != _texts(each[2])]
    return ChangeTrial(len(after), differences)


def _answered() -> QuerySet[Turn]:
    answered = Turn.objects.filter(
        by_hand=False, state=TurnState.SENT, message__isnull=False, message__revoked_at=None
    )
    return answered.select_related("chat", "message").order_by("-id")


def _rated_good() -> QuerySet[Turn]:
    return _answered().filter(pk__in=AnswerRating.objects.filter(is_good=True).values("turn"))


def turns_to_try(chat_id: UUID | None) -> list[Turn]:
    """Return answered turns with different questions: those that staff rated good come first.

    ``chat_id``: whose memory it is. Half of the questions are that person's.
    """
    answered, good = _answered(), _rated_good()
    own = _different(answered.filter(chat=chat_id)[:LOOKED_AT]) if chat_id else []
    others = _different([*good[:LOOKED_AT], *answered[:LOOKED_AT]])
    return _different([*own[: MAX_QUESTIONS // 2], *others])[:MAX_QUESTIONS]


def _different(turns: Iterable[Turn]) -> list[Turn]:
    """Leave out commands, and what the same person asked before."""
    found: dict[tuple[UUID, str], Turn] = {}
    for turn in turns:
        text = turn.message.content.strip() if turn.message else ""
        if text and not text.startswith(COMMAND):
            found.setdefault((turn.chat_id, text.casefold()), turn)
    return list(found.values())


def _recalled(turns: Sequence[Turn], dependencies: Dependencies) -> list[Sequence[Hit]]:
    """Return what is recalled for each question, as far as the time reaches."""
    end = time.monotonic() + MAX_SECONDS
    found: list[Sequence[Hit]] = []
    for turn in turns:
        if turn.message is None or time.monotonic() > end:
            break
        found.append(recall_today(turn.message, turn=turn, dependencies=dependencies).hits)
    return found


def _texts(hits: Sequence[Hit]) -> list[tuple[UUID, str]]:
    return [(hit.id, hit.content) for hit in hits]
