"""The memories that an answer didn't use, though they were the nearest to its question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from sessions_app.models import Turn, TurnReplay
from sessions_app.recall.facade import MEMORIES, Viewer, hit_record, recall
from sessions_app.turns.admin.recall_now import asked_again, why_impossible
from sessions_app.turns.admin.recalled import RecalledRow, recalled_rows
from sessions_app.turns.dependencies import build_turn_dependencies

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
