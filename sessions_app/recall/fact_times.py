"""Facts in time: which recalled memories hold, and which of two that disagree stands first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sessions_app.recall.hits import Hit

# In the metadata of a memory: times as ISO texts, and the ids of newer ones that may replace it.
SAID_AT, VALID_FROM, VALID_UNTIL, SAID_BY = "said_at", "valid_from", "valid_until", "said_by"
NEWER = "newer"


@dataclass(frozen=True)
class FactTimes:
    """When a fact was said, and when it holds."""

    said_at: datetime | None
    valid_from: datetime | None
    valid_until: datetime | None

    @classmethod
    def of(cls, metadata: dict[str, Any]) -> FactTimes:
        """Return the times in the metadata of a hit, or of a replay's entry."""
        given = (metadata.get(name) for name in (SAID_AT, VALID_FROM, VALID_UNTIL))
        return cls(*(datetime.fromisoformat(text) if text else None for text in given))

    def as_metadata(self) -> dict[str, str]:
        times = {
            SAID_AT: self.said_at, VALID_FROM: self.valid_from, VALID_UNTIL: self.valid_until
        }  # fmt: skip
        return {name: at.isoformat() for name, at in times.items() if at is not None}

    def has_ended(self, at: datetime) -> bool:
        return self.valid_until is not None and self.valid_until < at


def current_first(hits: Iterator[Hit], at: datetime) -> Iterator[Hit]:
    """Yield the memories that hold, or will; those that have ended only if there is no other."""
    ended = []
    known = False
    for hit in hits:
        if FactTimes.of(hit.metadata).has_ended(at):
            ended.append(hit)
        else:
            known = True
            yield hit
    if not known:
        yield from ended


def newest_first(hits: Sequence[Hit], read: Callable[[Sequence[UUID]], Iterable[Hit]]) -> list[Hit]:
    """Return the hits with each memory behind the newer one that may replace it.

    The newer one is as relevant as the older one. ``read``: reads those that weren't found.
    """
    found = {hit.id: hit for hit in hits}
    missing = {key for hit in hits for key in hit.metadata.get(NEWER, ()) if key not in found}
    if missing:
        found |= {hit.id: hit for hit in read(sorted(missing))}
    ordered: dict[UUID, Hit] = {}

    def add(hit: Hit, score: float) -> None:
        if hit.id in ordered:
            return
        for key in hit.metadata.get(NEWER, ()):
            if key in found and key != hit.id:
                add(found[key], max(score, found[key].score))
        ordered.setdefault(hit.id, replace(hit, score=score))

    for hit in hits:
        add(hit, hit.score)
    return [_without_newer(hit) for hit in ordered.values()]


def place_of(hit: Hit) -> tuple[float, bool, datetime]:
    """Return the place of a hit among others: behind the newer one that may replace it."""
    return -hit.score, NEWER in hit.metadata, hit.created_at


def _without_newer(hit: Hit) -> Hit:
    """Return a hit as it is recorded: ``newer`` says whether one stands before it."""
    kept = {name: value for name, value in hit.metadata.items() if name != NEWER}
    return replace(hit, metadata={**kept, NEWER: True} if hit.metadata.get(NEWER) else kept)
