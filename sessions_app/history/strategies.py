"""What is done about long conversations (CHAT_MEMORY_STRATEGY)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from sessions_app.models import ChatSession
from sessions_app.summaries.facade import (
    Summarizer,
    SummaryRules,
    is_due,
    session_summarize,
    summary_request,
)


class MemoryManagementStrategy(Protocol):
    """Manages the length of a conversation's history."""

    @property
    def name(self) -> str:
        """As the setting has it: "none" or "summarize"."""
        ...

    @property
    def fills_gaps(self) -> bool:
        """Whether a prompt tells, shortened, of what neither summary nor history holds."""
        ...

    def post_add_messages_hook(self, *, session: ChatSession) -> None:
        """Called after messages of the session were added, changed or removed and committed.
        Must be quick: somebody waits for the answer."""
        ...

    def work(self, *, session_id: UUID, token_limit: int, user_role: str) -> int:
        """Do in a worker what the hook found to do; returns how many summaries were stored."""
        ...


@dataclass(frozen=True)
class NoStrategy:
    """History is what the window holds; what left it is found by recall alone."""

    name: str = "none"
    fills_gaps: bool = False

    def post_add_messages_hook(self, *, session: ChatSession) -> None:
        """Nothing to do."""

    def work(self, *, session_id: UUID, token_limit: int, user_role: str) -> int:
        """Nothing to do."""
        return 0


def _nothing(_: UUID) -> None:
    """Where nobody enqueues: the sweep finds what is due."""


@dataclass(frozen=True)
class SummarizationStrategy:
    """Every ``summarize_every_n_messages`` messages are summed up by the summarizer's skill,
    in a worker. ``enqueue`` hands a session to one."""

    summarizer: Summarizer = field(default_factory=Summarizer)
    summarize_every_n_messages: int = 20
    delete_summarized_messages: bool = False
    enqueue: Callable[[UUID], None] = _nothing
    name: str = "summarize"
    fills_gaps: bool = True

    def __post_init__(self) -> None:
        """Raises ValueError for a number of messages below 1."""
        if self.summarize_every_n_messages < 1:
            raise ValueError("Summaries are made every 1 or more messages.")

    def post_add_messages_hook(self, *, session: ChatSession) -> None:
        """Put the session on record as due and enqueue it, once until it is worked off."""
        if is_due(session, self.summarize_every_n_messages) and summary_request(session.pk):
            self.enqueue(session.pk)

    def work(self, *, session_id: UUID, token_limit: int, user_role: str) -> int:
        """See session_summarize."""
        rules = SummaryRules(
            every=self.summarize_every_n_messages,
            delete_messages=self.delete_summarized_messages,
            token_limit=token_limit,
            user_role=user_role,
        )
        return session_summarize(session_id=session_id, summarizer=self.summarizer, rules=rules)
