"""Claim the work of making summaries, store them, and retract those whose messages changed."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from cards_app.rules.extract import Entry, entries_dump, entries_load, summary_text, written_entry
from memoryproject.foundation.leases import Lease
from sessions_app.conversations.message_store import NewMessage, messages_add
from sessions_app.models import ChatSession, Message, SummarizationMetadata, SummaryWork, Turn
from sessions_app.models.messages import Role
from sessions_app.models.sessions import SessionStatus
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.summaries.summarizer import Made

# The delays after failures: the model server is down or overloaded.
WAITS = (timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=10))


@dataclass(frozen=True)
class SummaryLease(Lease[SummaryWork]):
    """The right to make a session's summaries."""

    @property
    def session_id(self) -> UUID:
        return self.row.session_id

    def progress(self) -> None:
        """Reset the failures, because a summary was stored."""
        self.held().update(attempts=1, error="")

    def finish(self, *, again_at: datetime | None = None) -> None:
        """Mark that nothing is due any more, or not before ``again_at``."""
        self.release(due=False, attempts=0, error="", not_before=again_at)

    def postpone(self, error: str) -> None:
        """Store a failure; the delay before the next try grows each time."""
        work = self.held().first()
        if work is None:
            return
        wait = WAITS[min(work.attempts, len(WAITS)) - 1]
        self.release(error=error, not_before=timezone.now() + wait)


def summary_is_requested(session_id: UUID) -> bool:
    """Return whether the session is marked."""
    return SummaryWork.objects.filter(pk=session_id, due=True).exists()


def summary_request(session_id: UUID) -> bool:
    """Mark that a session has messages to summarise; return whether the mark is new."""
    if SummaryWork.objects.filter(pk=session_id, due=False).update(due=True, not_before=None):
        return True
    if SummaryWork.objects.filter(pk=session_id).exists():
        return False
    made = SummaryWork.objects.bulk_create(
        [SummaryWork(session_id=session_id, due=True)], ignore_conflicts=True
    )
    return bool(made)


def summary_claim(session_id: UUID, *, now: datetime | None = None) -> SummaryLease | None:
    """Claim the work; return None if none is due, it has to wait, or another worker holds it."""
    now = now or timezone.now()
    work = SummaryWork.objects.filter(pk=session_id, due=True).first()
    if work is None or (work.not_before and work.not_before > now):
        return None
    unchanged = SummaryWork.objects.filter(due=True, attempts=work.attempts)
    token = unchanged.claim(work, now=now, attempts=F("attempts") + 1)
    return SummaryLease(work, token) if token else None


def excerpts_waiting(now: datetime) -> list[UUID]:
    """Return the session that waits longest for the model to replace its last summary's excerpts.

    One at a time: a model that is still down must not hold up other work.
    """
    later = SummarizationMetadata.objects.filter(
        session=OuterRef("session"), number__gt=OuterRef("number")
    )
    last = SummarizationMetadata.objects.filter(
        ~Exists(later), is_extractive=True, sources_deleted=False, session__summary_work__due=False
    ).exclude(session__status=SessionStatus.ARCHIVED)
    waits = last.exclude(session__summary_work__not_before__gt=now)
    oldest = waits.order_by(F("session__summary_work__not_before").asc(nulls_first=True))
    return list(oldest.values_list("session", flat=True)[:1])


def summaries_abandoned(now: datetime) -> list[UUID]:
    """Return the sessions whose summaries are due and that no worker holds."""
    ready = Q(not_before__isnull=True) | Q(not_before__lte=now)
    due = SummaryWork.objects.filter(ready, due=True)
    return [work.session_id for work in due.abandoned(now)]


# Store a summary, and retract summaries whose messages have changed.


logger = logging.getLogger(__name__)


class ChunkChangedError(Exception):
    """Messages were edited, revoked or deleted while they were summarised: start again."""


def summary_store(
    *,
    chunk: "Chunk",
    lease: SummaryLease,
    made: Made,
    kept: Sequence[Entry],
    skill_id: str,
    delete_messages: bool,
    token_limit: int,
    now: datetime,
) -> SummarizationMetadata:
    """Store the summary that a chunk brings up to date as the session's next message.

    ``made``: the sentences of the chunk; ``kept``: the most telling of the whole session, which the
    message holds. ``delete_messages`` holds for a summary by the model: while it is of excerpts,
    nothing else tells what was said.

    Raises LeaseLostError and ChunkChangedError, and then nothing is stored.
    """
    with transaction.atomic():
        session = ChatSession.objects.select_for_update(no_key=True).get(pk=chunk.session_id)
        lease.lock()
        if chunk.is_again:
            summaries_retract(session=session, order_num=chunk.messages[0].order_num)
        _check_unchanged(session, chunk)
        delete_messages = delete_messages and not made.is_extractive
        record = SummarizationMetadata(
            session=session,
            **chunk.covered(),
            digest="\n".join(each.bullet for each in made.entries),
            chapter=entries_dump(kept),
            skill_id=skill_id,
            model=made.model,
            is_extractive=made.is_extractive,
            sources_deleted=delete_messages,
            created_at=now,
        )
        new = _message(record, kept, now)
        (record.summary_message,) = messages_add(
            session=session, new=[new], token_limit=token_limit, now=now
        )
        record.save(force_insert=True)
        session.summarized_until = record.last_order
        if delete_messages:
            _delete(session, chunk)
        session.save(update_fields=["summarized_until", "total_tokens"])
    logger.info("Session %s: %s was stored.", session.session_id, record)
    return record


def _message(record: SummarizationMetadata, kept: Sequence[Entry], now: datetime) -> NewMessage:
    metadata: dict[str, str | bool] = {"summaryMetadataId": str(record.summary_metadata_id)}
    if record.is_extractive:
        metadata["extractive"] = True
    return NewMessage(Role.SUMMARY, summary_text(kept), now, sender="assistant", metadata=metadata)


def chunk_pass(*, chunk: "Chunk", lease: SummaryLease, delete_messages: bool) -> None:
    """Go on behind a chunk in which there is nothing to sum up.

    Raises LeaseLostError and ChunkChangedError, and then nothing is stored.
    """
    with transaction.atomic():
        session = ChatSession.objects.select_for_update(no_key=True).get(pk=chunk.session_id)
        lease.lock()
        _check_unchanged(session, chunk)
        session.summarized_until = chunk.last_order
        if delete_messages:
            _delete(session, chunk)
        session.save(update_fields=["summarized_until", "total_tokens"])


def _check_unchanged(session: ChatSession, chunk: "Chunk") -> None:
    same_end = session.summarized_until == chunk.after
    current = messages_unsummarized(session).filter(order_num__lte=chunk.last_order)
    if not same_end or list(current.values_list("pk", "content")) != chunk.seen:
        raise ChunkChangedError(f"messages of session {session.session_id} changed meanwhile")


def _delete(session: ChatSession, chunk: "Chunk") -> None:
    """Delete the summarised messages, and subtract those in the window from its token count."""
    summarized = Message.objects.filter(pk__in=chunk.ids)
    in_window = summarized.filter(order_num__gte=session.window_start)
    session.total_tokens -= in_window.aggregate(all=Sum("tokens"))["all"] or 0
    summarized.delete()


def summaries_retract(*, session: ChatSession, order_num: int) -> list[str]:
    """Remove the summary that covers a changed message, and those after it, which build on it.

    Their messages wait for a summary again. ``session`` is locked by the caller and saved. Returns
    the removed texts.
    """
    if order_num > session.summarized_until:
        return []
    void = SummarizationMetadata.objects.filter(session=session, last_order__gte=order_num)
    first = void.order_by("number").first()
    if first is None:
        return []
    messages = Message.objects.filter(summarization__in=void)
    texts = list(messages.values_list("content", flat=True))
    for digest, chapter in void.values_list("digest", "chapter"):
        entries = entries_load(chapter)
        # A prompt held those sentences of the summary that weren't in its history.
        lines = [chapter] if entries is None else [each.bullet for each in entries]
        texts += [digest, *lines]
    in_window = messages.filter(order_num__gte=session.window_start)
    session.total_tokens -= in_window.aggregate(all=Sum("tokens"))["all"] or 0
    session.summarized_until = first.first_order - 1
    session.save(update_fields=["total_tokens", "summarized_until"])
    Message.objects.filter(pk__in=list(messages.values_list("pk", flat=True))).delete()
    return list(dict.fromkeys(text for text in texts if text.strip()))


# Choose the messages of a session that are summarised next.


@dataclass(frozen=True)
class Chunk:
    """A run of messages without a summary, which will be part of summary ``number``.

    ``seen`` holds the ids and texts that were read. If they differ when the summary is stored, a
    message was edited, revoked or deleted meanwhile and the summary is void. ``is_again``: it has a
    summary, of excerpts, which is replaced together with those after it.
    """

    session_id: UUID
    after: int
    number: int
    messages: Sequence[Message]
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

    def covered(self) -> dict[str, Any]:
        """Return the fields of its record that say which messages the summary covers."""
        times = [message.timestamp for message in self.messages]
        return {
            "number": self.number,
            "summarized_message_ids": self.ids,
            "first_order": self.messages[0].order_num,
            "last_order": self.last_order,
            "range_start": min(times),
            "range_end": max(times),
        }


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
    last = session.summarizations.order_by("-number").values_list("number", flat=True).first()
    return Chunk(session.pk, session.summarized_until, (last or 0) + 1, messages)


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
    return Chunk(session_id, first.first_order - 1, first.number, messages, is_again=True)


def entries_before(chunk: Chunk) -> tuple[list[Entry], int]:
    """Return the sentences that the summary before a chunk kept.

    Beside them the order_num from which on messages have to be read again, because a summary of a
    version before 1.1 holds none: 0 for no message. Then the sentences are those of its messages
    that are deleted.
    """
    before = SummarizationMetadata.objects.filter(
        session=chunk.session_id, number__lt=chunk.number
    ).order_by("number")
    last = before.last()
    if last is None:
        return [], 0
    entries = entries_load(last.chapter)
    if entries is not None:
        return entries, 0
    deleted = before.filter(sources_deleted=True).values_list("digest", "last_order")
    lines = ((line, place) for digest, place in deleted for line in digest.splitlines())
    return [written_entry(line, [place]) for line, place in lines if line.strip()], last.last_order
