"""Strategies for long conversations (CHAT_MEMORY_STRATEGY)."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from uuid import UUID

from sessions_app.limits.answer_limits import MeteredChatModel
from sessions_app.limits.intake import UsageLimits
from sessions_app.models import GODFATHER, ChatSession
from sessions_app.summaries import summary_store
from sessions_app.summaries.summarize import SummaryRules, session_summarize
from sessions_app.summaries.summarizer import Summarizer


class MemoryManagementStrategy:
    """Manages the length of a conversation's history; this one does nothing.

    ``fills_gaps``: a prompt has excerpts of what neither summary nor history holds.
    """

    fills_gaps = False

    def post_add_messages_hook(self, *, session: ChatSession) -> None:
        """React to messages of the session that were added, changed or removed and committed.

        It must be quick, because a person waits for the answer.
        """

    def work(self, *, session_id: UUID, token_limit: int, user_role: str) -> int:
        """Do the work that the hook found, in a worker; return how many summaries were stored."""
        return 0


class NoStrategy(MemoryManagementStrategy):
    """Keep only the window as history; older messages are found only by recall."""


def _nothing(_: UUID) -> None:
    """Do nothing: if nobody enqueues, the periodic sweep finds what is due."""


@dataclass(frozen=True)
class SummarizationStrategy(MemoryManagementStrategy):
    """Summarise each run of ``summarize_every_n_messages`` messages in a worker.

    The summarizer's skill makes the text. ``enqueue`` hands a session to a worker.
    """

    summarizer: Summarizer = field(default_factory=Summarizer)
    summarize_every_n_messages: int = 20
    delete_summarized_messages: bool = False
    enqueue: Callable[[UUID], None] = _nothing
    fills_gaps = True
    limits: UsageLimits = field(default_factory=UsageLimits)

    def __post_init__(self) -> None:
        """Raise ValueError for a number of messages below 1."""
        if self.summarize_every_n_messages < 1:
            raise ValueError("Summaries are made every 1 or more messages.")

    def post_add_messages_hook(self, *, session: ChatSession) -> None:
        """Mark the session as due and enqueue it, once until the work is done."""
        every = self.summarize_every_n_messages
        if not summary_store.may_be_due(session, every) or summary_store.summary_is_requested(
            session.pk
        ):
            return
        if summary_store.is_due(session, every) and summary_store.summary_request(session.pk):
            self.enqueue(session.pk)

    def work(self, *, session_id: UUID, token_limit: int, user_role: str) -> int:
        """See session_summarize."""
        rules = SummaryRules(
            every=self.summarize_every_n_messages,
            delete_messages=self.delete_summarized_messages,
            token_limit=token_limit,
            user_role=user_role,
        )
        summarizer = self._metered(session_id, is_owner=user_role == GODFATHER)
        return session_summarize(session_id=session_id, summarizer=summarizer, rules=rules)

    def _metered(self, session_id: UUID, *, is_owner: bool) -> Summarizer:
        """Return the summarizer, which makes excerpts where a limit forbids to ask the model."""
        model = self.summarizer.chat_model
        chats = ChatSession.objects.filter(pk=session_id).values_list("chat_id", flat=True)
        chat_id = chats.first()
        if model is None or chat_id is None:
            return self.summarizer
        metered = MeteredChatModel(model, chat_id, is_owner, self.limits, in_background=True)
        return replace(self.summarizer, chat_model=metered)
