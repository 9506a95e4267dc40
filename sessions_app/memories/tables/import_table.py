"""Store the sentences of a table, all of them or none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from memories_app.models import Memory
from memories_app.store.facade import DUPLICATE, memories_remember
from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.memories.tables.plan import INVALID, SAME, Plan


class ChangedSincePreviewError(Exception):
    """The chosen changes aren't those that the table would make now: memories changed meanwhile."""


@dataclass(frozen=True)
class TableImported:
    """The result of an import.

    ``added`` are new, ``replaced`` are new and replaced ``older`` ones; ``known`` were there
    before, ``left_out`` weren't chosen, and ``invalid`` couldn't be.
    """

    added: tuple[Memory, ...]
    replaced: tuple[Memory, ...]
    older: int
    known: int
    left_out: int
    invalid: int


def table_import(
    *, plan: Plan, embedder: Embedder, actor: Actor, chosen: Collection[str] | None = None
) -> TableImported:
    """Store what the plan says. ``chosen``: the marks of the sentences to store; None: all.

    Importing a table again changes nothing. Raises ChangedSincePreviewError, EmbedderError,
    MemoryValidationError, DatabaseError; nothing is stored then.
    """
    storable = [row for row in plan.rows if row.is_stored]
    if chosen is not None and not set(chosen) <= {row.mark for row in storable}:
        raise ChangedSincePreviewError
    wanted = [row for row in storable if chosen is None or row.mark in chosen]
    counts = plan.counts

    def record() -> None:
        audit_record(
            action="memory.table",
            actor=actor,
            object_type="memories",
            details={
                "kind": plan.kind,
                "visibility": plan.choices.visibility,
                "memories": len(wanted),
            },
        )

    stored = []
    if wanted:
        memories = [plan.new_memory(row) for row in wanted]
        stored = memories_remember(
            memories=memories, embedder=embedder, actor=actor, before_storing=record
        )
    fresh = [one for one in stored if one.status != DUPLICATE]
    return TableImported(
        added=tuple(one.memory for one in fresh if not one.superseded),
        replaced=tuple(one.memory for one in fresh if one.superseded),
        older=len({older for one in fresh for older in one.superseded}),
        known=counts[SAME] + len(stored) - len(fresh),
        left_out=len(storable) - len(wanted),
        invalid=counts[INVALID],
    )
