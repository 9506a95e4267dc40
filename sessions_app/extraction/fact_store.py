"""Store the facts learned from a turn, if their messages are unchanged when they are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from memories_app.facts.facade import NewMemory
from memories_app.search.facade import scope_of
from memories_app.store.facade import memories_remember
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.conversations.facade import Reader, forgetting_wait
from sessions_app.extraction.extraction_claims import ExtractionLease
from sessions_app.extraction.fact_check import facts_checked
from sessions_app.extraction.source_text import SourceText, source_text_of
from sessions_app.models import ChatSession

if TYPE_CHECKING:
    from sessions_app.extraction.facts_form import Fact

NOTHING_LEARNED = "nothing worth learning"


class SourceChangedError(Exception):
    """The messages were edited, revoked or forgotten meanwhile: start again."""


@dataclass(frozen=True)
class Outcome:
    """The numbers of facts in the model's answer, by outcome.

    They were learned (or stated again), wait for staff, were said by nobody, had been forgotten, or
    hold a password or the number of a card, which is stored nowhere.
    """

    learned: int = 0
    waiting: int = 0
    unsaid: int = 0
    forgotten: int = 0
    secret: int = 0

    def __str__(self) -> str:
        counts = [f"{count} {name}" for name, count in vars(self).items() if count]
        return ", ".join(counts) or NOTHING_LEARNED


def facts_store(
    *,
    facts: Sequence[Fact],
    source: SourceText,
    lease: ExtractionLease,
    embedder: Embedder,
    forgotten: Callable[[str, str], bool],
    min_confidence: float,
    memory_enabled: bool,
    written_on: date,
) -> Outcome:
    """Store the facts that people said and end the work, in one transaction.

    Raises LeaseLostError and SourceChangedError, and the errors of memories_remember; then nothing
    is stored.
    """
    checked = facts_checked(
        facts=facts, source=source, min_confidence=min_confidence, written_on=written_on
    )
    stated = checked.stated
    new = [each for each in stated if not forgotten(each.content, _scope(each))]
    waiting = sum(each.proposed for each in new)
    outcome = Outcome(
        learned=len(new) - waiting,
        waiting=waiting,
        unsaid=checked.unsaid,
        forgotten=len(stated) - len(new),
        secret=checked.secret,
    )

    def source_is_current() -> None:
        forgetting_wait(Reader(source.chat_id, sees_all=source.is_owners))
        ChatSession.objects.select_for_update(no_key=True).filter(pk=source.session_id).first()
        lease.lock()
        now = source_text_of(lease.turn_id, memory_enabled=memory_enabled)
        if now is None or (now.chat_id, now.seen) != (source.chat_id, source.seen):
            raise SourceChangedError(f"the messages of turn {lease.turn_id} changed meanwhile")
        if any(forgotten(each.content, _scope(each)) for each in new):
            raise SourceChangedError("what was learned was forgotten meanwhile")
        lease.finish(str(outcome))

    actor = Actor("system", chat_id=source.chat_id)
    memories_remember(
        memories=new, embedder=embedder, actor=actor, before_storing=source_is_current
    )
    return outcome


def _scope(new: NewMemory) -> str:
    return scope_of(new.visibility, new.chat_id)
