"""Repeat the recall of a turn today and compare it with the recall at that time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from sessions_app.models import Turn, TurnReplay
from sessions_app.recall.facade import MEMORIES, Viewer, hit_record, recall
from sessions_app.turns.admin.recalled import RecalledRow, recalled_rows
from sessions_app.turns.compose_prompt import recall_today
from sessions_app.turns.dependencies import build_turn_dependencies
from sessions_app.turns.turn_dependencies import Dependencies

NEW, GONE, UP, DOWN, SAME = "new", "gone", "up", "down", "same"


@dataclass(frozen=True)
class Compared:
    """A row of the old or the new list.

    ``other``: its place in the other list, None where it isn't there.
    """

    row: RecalledRow
    change: str
    other: int | None

    @property
    def words(self) -> str:
        if self.change == NEW:
            return _("new")
        if self.change == GONE:
            return _("not recalled today")
        if self.change == SAME:
            return _("unchanged")
        return _("was no. %(n)d") % {"n": self.other}


@dataclass(frozen=True)
class RecallNow:
    """The two lists of recalled texts.

    ``impossible``: the reason, in words, why recall can't be repeated.
    """

    then: Sequence[Compared] = ()
    now: Sequence[Compared] = ()
    degraded: bool = False
    impossible: str = ""


def recall_now(turn: Turn) -> RecallNow:
    """Repeat the recall of a turn with the rights that the turn's chat has today.

    Only the messages that could be recalled at that time count: those before the turn's message
    that its prompt didn't hold.
    """
    dependencies = build_turn_dependencies()
    message, question = turn.message, asked_again(turn)
    impossible = why_impossible(question, dependencies)
    if message is None or impossible:
        return RecallNow(impossible=impossible)
    found = recall_today(message, turn=turn, dependencies=dependencies)
    hits: list[dict[str, Any]] = [hit_record(hit) for hit in found.hits]
    # Cards are chosen by time and not by the question.
    earlier = [
        entry
        for entry in TurnReplay.of(turn).recalled
        if entry.get("source") in ("memory", "message")
    ]
    rows = recalled_rows([*earlier, *hits])
    then = rows[: len(earlier)]
    now = [replace(row, place=place) for place, row in enumerate(rows[len(earlier) :], start=1)]
    return RecallNow(
        then=_compared(then, now, missing=GONE),
        now=_compared(now, then, missing=NEW),
        degraded=found.degraded,
    )


def asked_again(turn: Turn) -> str:
    """Return the question of the turn, empty where it isn't kept any more."""
    message = turn.message
    return "" if message is None or message.revoked_at is not None else message.content.strip()


def why_impossible(question: str, dependencies: Dependencies) -> str:
    """Return in words why nothing can be recalled for the question now, or an empty text."""
    if not question:
        return _("The question isn't kept any more, so it can't be asked.")
    if not dependencies.rules.longterm_enabled:
        return _("Long-term memory is off (LONGTERM_ENABLED).")
    return ""


def _compared(
    rows: Sequence[RecalledRow], others: Sequence[RecalledRow], *, missing: str
) -> list[Compared]:
    places = {row.key: row.place for row in others}
    return [_change(row, places.get(row.key), missing) for row in rows]


def _change(row: RecalledRow, other: int | None, missing: str) -> Compared:
    if other is None:
        return Compared(row, missing, None)
    if other == row.place:
        return Compared(row, SAME, other)
    return Compared(row, UP if row.place < other else DOWN, other)


# The memories that an answer didn't use, though they were the nearest to its question.

NEAREST = 5


@dataclass(frozen=True)
class NearMiss:
    """A memory that wasn't used. ``strong``: it would be now, such as one that was added since."""

    row: RecalledRow
    strong: bool

    @property
    def words(self) -> str:
        return _("would be used now") if self.strong else _("too weak to be used")


@dataclass(frozen=True)
class NearMisses:
    """The nearest memories that weren't used, best first; a memory is used from ``threshold`` on.

    ``impossible``: the reason, in words, why the question can't be asked again.
    """

    found: Sequence[NearMiss] = ()
    threshold: float = 0.0
    degraded: bool = False
    impossible: str = ""


def near_misses(turn: Turn) -> NearMisses:
    """Ask the turn's question again, with the rights that its chat has today and no threshold.

    What is near is computed now, among today's memories: a replay holds only what was used.
    """
    dependencies = build_turn_dependencies()
    question = asked_again(turn)
    if impossible := why_impossible(question, dependencies):
        return NearMisses(impossible=impossible)
    entries = TurnReplay.of(turn).recalled
    used = {str(entry.get("id")) for entry in entries if entry.get("source") == "memory"}
    found = recall(
        query=question,
        viewer=Viewer(user_role=dependencies.chat_memory.role_in(turn.chat), chat_id=turn.chat_id),
        embedder=dependencies.embedder,
        top_k=NEAREST + len(used),
        min_similarity=0.0,
        sources=(MEMORIES,),
        # The person waits for the page.
        repeats=True,
    )
    hits = [hit for hit in found.hits if str(hit.id) not in used][:NEAREST]
    threshold = dependencies.rules.min_similarity
    rows = recalled_rows([hit_record(hit) for hit in hits])
    return NearMisses(
        found=[NearMiss(row, hit.score >= threshold) for row, hit in zip(rows, hits, strict=True)],
        threshold=threshold,
        degraded=found.degraded,
    )
