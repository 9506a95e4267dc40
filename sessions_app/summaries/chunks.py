"""Choose the messages of a session that are summarised next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from sessions_app.models import ChatSession, Message, SummarizationMetadata, Turn
from sessions_app.models.messages import Role
from sessions_app.models.sessions import SessionStatus
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.summaries.sizes import FOLD


@dataclass(frozen=True)
class Chunk:
    """A run of messages without a summary, and the digests that its summary builds on.

    ``seen`` holds the ids and texts that were read. If they differ when the summary is stored, a
    message was edited, revoked or deleted meanwhile and the summary is void. ``is_again``: it has a
    summary, of excerpts, which is replaced together with those after it.
    """

    session_id: UUID
    after: int
    number: int
    messages: Sequence[Message]
    digests_before: Sequence[str]
    is_again: bool = False

    @property
    def ids(self) -> list[UUID]:
        return [message.pk for message in self.messages]

    @property
    def seen(self) -> list[tuple[UUID, str]]:
        return [(message.pk, message.content) for message in self.messages]

    @property
    def last_order(self) -> int:
        return self.messages[-1].order_num

    @property
    def time_range(self) -> tuple[datetime, datetime]:
        times = [message.timestamp for message in self.messages]
        return min(times), max(times)

    @property
    def closes_chapter(self) -> bool:
        return self.number % FOLD == 0


def messages_unsummarized(session: ChatSession) -> QuerySet[Message]:
    """Return the messages that no summary covers yet, oldest first, without summaries."""
    messages = session.messages.filter(order_num__gt=session.summarized_until)
    return messages.exclude(role=Role.SUMMARY).order_by("order_num")


def may_be_due(session: ChatSession, every: int) -> bool:
    """Return whether the counters allow that there are enough messages for another summary."""
    return session.message_counter - session.summarized_until >= every


def is_due(session: ChatSession, every: int) -> bool:
    """Return whether there are enough messages for another summary.

    Reads ``every`` rows at most, and none at all if the counters already rule it out.
    """
    return may_be_due(session, every) and (
        len(messages_unsummarized(session).values_list("pk")[:every]) == every
    )


def chunk_next(session_id: UUID, *, every: int, answered_only: bool) -> Chunk | None:
    """Return the oldest ``every`` messages without a summary.

    Returns None if there are fewer, or if the session is archived.

    answered_only: none of them may still wait for its answer, because they will be deleted.
    """
    session = ChatSession.objects.filter(pk=session_id).first()
    if session is None or session.status == SessionStatus.ARCHIVED:
        return None
    messages = list(messages_unsummarized(session).defer("terms")[:every])
    if len(messages) < every:
        return None
    open_states = [*WAITING_STATES, TurnState.DEFERRED, TurnState.SENDING]
    if answered_only and Turn.objects.filter(message__in=messages, state__in=open_states).exists():
        return None
    number, digests = _chain_end(session.summarizations.all())
    return Chunk(session.pk, session.summarized_until, number + 1, messages, digests)


def chunk_of_excerpts(session_id: UUID) -> Chunk | None:
    """Return the messages of the first of the last summaries that are excerpts, to sum up again.

    Their messages are kept for this. What follows a summary of excerpts by the model stays.
    """
    session = ChatSession.objects.exclude(status=SessionStatus.ARCHIVED).filter(pk=session_id)
    first: SummarizationMetadata | None = None
    for made in SummarizationMetadata.objects.filter(session__in=session).order_by("-number"):
        if not made.is_extractive or made.sources_deleted:
            break
        first = made
    if first is None:
        return None
    inside = Message.objects.filter(
        session=session_id, order_num__range=(first.first_order, first.last_order)
    )
    messages = list(inside.exclude(role=Role.SUMMARY).defer("terms").order_by("order_num"))
    if not messages:
        return None
    before = SummarizationMetadata.objects.filter(session=session_id, number__lt=first.number)
    _number, digests = _chain_end(before)
    after = first.first_order - 1
    return Chunk(session_id, after, first.number, messages, digests, is_again=True)


def _chain_end(chain: QuerySet[SummarizationMetadata]) -> tuple[int, list[str]]:
    """Return the last summary's number, and the digests since the last chapter, oldest first."""
    last = list(chain.order_by("-number").values_list("number", "digest")[:FOLD])
    digests = []
    for number, digest in last:
        if number % FOLD == 0:
            break
        digests.append(digest)
    return (last[0][0] if last else 0), digests[::-1]
