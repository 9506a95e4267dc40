"""Claim the work of making summaries, store them, and retract those whose messages have changed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from memoryproject.foundation.leases import Lease
from memoryproject.foundation.text.characters import CHARACTERS_A_TOKEN, cut_at_word
from sessions_app.conversations.message_store import NewMessage, messages_add
from sessions_app.models import ChatSession, Message, SummarizationMetadata, SummaryWork, Turn
from sessions_app.models.messages import Role
from sessions_app.models.sessions import SessionStatus
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.summaries.summarizer import FOLD, Made, sizes_for

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

# More chapters don't fit in a summary.
MAX_CHAPTERS = 20


class ChunkChangedError(Exception):
    """Messages were edited, revoked or deleted while they were summarised: start again."""


def summary_store(
    *,
    chunk: Chunk,
    lease: SummaryLease,
    digest: Made,
    chapter: Made | None,
    skill_id: str,
    delete_messages: bool,
    token_limit: int,
    now: datetime,
) -> SummarizationMetadata:
    """Store the summary of a chunk as the session's next message, with its record.

    ``delete_messages`` holds for a summary by the model: while it is of excerpts, nothing else
    tells what was said.

    Raises LeaseLostError and ChunkChangedError, and then nothing is stored.
    """
    with transaction.atomic():
        session = ChatSession.objects.select_for_update(no_key=True).get(pk=chunk.session_id)
        lease.lock()
        if chunk.is_again:
            summaries_retract(session=session, order_num=chunk.messages[0].order_num)
        _check_unchanged(session, chunk)
        is_extractive = digest.is_extractive or bool(chapter and chapter.is_extractive)
        delete_messages = delete_messages and not is_extractive
        record = SummarizationMetadata(
            session=session,
            number=chunk.number,
            summarized_message_ids=chunk.ids,
            first_order=chunk.messages[0].order_num,
            last_order=chunk.last_order,
            range_start=chunk.time_range[0],
            range_end=chunk.time_range[1],
            digest=digest.text,
            chapter=chapter.text if chapter else "",
            skill_id=skill_id,
            model=digest.model,
            is_extractive=is_extractive,
            sources_deleted=delete_messages,
            created_at=now,
        )
        record.summary_message = _message(session, record, token_limit, now)
        record.save(force_insert=True)
        session.summarized_until = record.last_order
        if delete_messages:
            _delete(session, chunk)
        session.save(update_fields=["summarized_until", "total_tokens"])
    logger.info("Session %s: %s was stored.", session.session_id, record)
    return record


def chunk_pass(*, chunk: Chunk, lease: SummaryLease, delete_messages: bool) -> None:
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


def _check_unchanged(session: ChatSession, chunk: Chunk) -> None:
    same_end = session.summarized_until == chunk.after
    current = messages_unsummarized(session).filter(order_num__lte=chunk.last_order)
    if not same_end or list(current.values_list("pk", "content")) != chunk.seen:
        raise ChunkChangedError(f"messages of session {session.session_id} changed meanwhile")


def _message(
    session: ChatSession, record: SummarizationMetadata, token_limit: int, now: datetime
) -> Message:
    content = compose_summary(_parts(session, record), longest_tokens=sizes_for(token_limit).whole)
    metadata = {"summaryMetadataId": str(record.summary_metadata_id)}
    new = NewMessage(
        role=Role.SUMMARY,
        content=content,
        timestamp=now,
        sender="assistant",
        metadata={**metadata, "extractive": True} if record.is_extractive else metadata,
    )
    (message,) = messages_add(session=session, new=[new], token_limit=token_limit, now=now)
    return message


def _parts(session: ChatSession, record: SummarizationMetadata) -> list[str]:
    """Return the chapters, then the digests that are in no chapter yet, oldest first."""
    before = SummarizationMetadata.objects.filter(session=session, number__lt=record.number)
    chapters = before.filter(number__in=_chapter_numbers(record.number)).order_by("number")
    texts = list(chapters.values_list("chapter", flat=True))
    if record.number % FOLD == 0:
        return [*texts, record.chapter]
    since = before.filter(number__gt=record.number - record.number % FOLD).order_by("number")
    return [*texts, *since.values_list("digest", flat=True), record.digest]


def _chapter_numbers(number: int) -> list[int]:
    """Return the numbers of the latest summaries before this one that hold a chapter."""
    last = (number - 1) // FOLD * FOLD
    return list(range(last, 0, -FOLD))[:MAX_CHAPTERS]


def _delete(session: ChatSession, chunk: Chunk) -> None:
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
    texts += [text for pair in void.values_list("digest", "chapter") for text in pair]
    in_window = messages.filter(order_num__gte=session.window_start)
    session.total_tokens -= in_window.aggregate(all=Sum("tokens"))["all"] or 0
    session.summarized_until = first.first_order - 1
    session.save(update_fields=["total_tokens", "summarized_until"])
    Message.objects.filter(pk__in=list(messages.values_list("pk", flat=True))).delete()
    return [text for text in texts if text.strip()]


# Compose a summary message from chapters and digests. Pure.

LEFT_OUT = "(The beginning is left out here.)"
# Less space than this holds nothing useful.
WORTH_READING = 60


def compose_summary(parts: Sequence[str], *, longest_tokens: int) -> str:
    """Join the parts, oldest first, in at most ``longest_tokens``.

    The newest are whole, the first that doesn't fit is cut, and older ones are replaced by a short
    note.
    """
    room = longest_tokens * CHARACTERS_A_TOKEN
    texts = [part.strip() for part in parts if part.strip()]
    if len("\n".join(texts)) <= room:
        return "\n".join(texts)
    room -= len(LEFT_OUT) + 1
    kept: list[str] = []
    for part in reversed(texts):
        if len(part) + 1 <= room:
            kept.append(part)
            room -= len(part) + 1
            continue
        if room >= WORTH_READING or not kept:
            kept.append(cut_at_word(part, max(room, 1)))
        break
    return cut_at_word("\n".join([LEFT_OUT, *reversed(kept)]), longest_tokens * CHARACTERS_A_TOKEN)


# Choose the messages of a session that are summarised next.


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
