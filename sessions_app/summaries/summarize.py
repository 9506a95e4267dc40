"""Make the summaries that are due in a session, in a worker."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from django.db import DatabaseError
from django.utils import timezone

from cards_app.rules.extract import Entry, Said, choose_entries, find_entries
from cards_app.rules.session_data import Line
from memoryproject.foundation.errors.stored_errors import named_error_text
from memoryproject.foundation.integrations.llm.base import ChatModelError
from memoryproject.foundation.leases import LeaseLostError
from sessions_app.conversations.message_text import is_knowledge, speaker_of, text_with_reactions
from sessions_app.models import Message, Role, SummaryWork
from sessions_app.summaries import summary_store
from sessions_app.summaries.summarizer import Made, Summarizer, extract, sizes_for

logger = logging.getLogger(__name__)

# After this many failures the text is extracted, or the gap would stay open.
MAX_ATTEMPTS = 3
# Excerpts whose messages wait to be deleted are replaced when the model is back.
AGAIN_AFTER = timedelta(hours=1)
# So many messages are read at once where a summary of an older version is replaced.
PORTION = 200


@dataclass(frozen=True)
class SummaryRules:
    """The rules for a session's summaries.

    ``every`` is the number of messages that a summary covers. ``delete_messages`` says whether they
    are deleted once the model has summed them up. ``token_limit`` and ``user_role`` are those of
    the session's chat.
    """

    every: int
    delete_messages: bool
    token_limit: int
    user_role: str


def session_summarize(*, session_id: UUID, summarizer: Summarizer, rules: SummaryRules) -> int:
    """Make every summary that is due in the session; return how many were stored.

    Returns at once if another worker holds the work. A failing model leaves the rest for later;
    after three failures, or a permanent one, the summary is extracted from the messages' own words.
    """
    stored = 0
    while lease := summary_store.summary_claim(session_id):
        try:
            if rules.delete_messages:
                stored += _replace_excerpts(lease, summarizer, rules)
            while chunk := _next(session_id, rules):
                stored += _make_one(chunk, lease, summarizer, rules)
        except LeaseLostError as lost:
            logger.warning("%s", lost)
            break
        except (ChatModelError, DatabaseError) as error:
            logger.warning("A summary of session %s was not made: %s", session_id, error)
            lease.postpone(named_error_text(error))
            break
        waits = rules.delete_messages and summary_store.chunk_of_excerpts(session_id) is not None
        lease.finish(again_at=timezone.now() + AGAIN_AFTER if waits else None)
        # A message that arrived after the last check found the work still marked as due.
        if _next(session_id, rules) is None:
            break
        summary_store.summary_request(session_id)
    return stored


def _next(session_id: UUID, rules: SummaryRules) -> summary_store.Chunk | None:
    return summary_store.chunk_next(
        session_id, every=rules.every, answered_only=rules.delete_messages
    )


def _replace_excerpts(
    lease: summary_store.SummaryLease, summarizer: Summarizer, rules: SummaryRules
) -> int:
    """Let the model sum up what the last summaries have only excerpts of, if it can by now.

    The first of them is made again. Those after it go, and are made as if they were new.
    """
    chunk = summary_store.chunk_of_excerpts(lease.session_id)
    if chunk is None or summarizer.chat_model is None:
        return 0
    try:
        return _make_one(chunk, lease, summarizer, rules)
    except ChatModelError as error:
        logger.info("Session %s keeps its summary of excerpts: %s", lease.session_id, error)
        return 0


def _make_one(
    chunk: summary_store.Chunk,
    lease: summary_store.SummaryLease,
    summarizer: Summarizer,
    rules: SummaryRules,
) -> int:
    """Make and store one summary.

    Return 0 if there is nothing to sum up, or its messages changed meanwhile.
    """
    lines = _said(chunk.messages, rules.user_role)
    made = _model_or_excerpts(summarizer, lines, chunk, lease, rules)
    if chunk.is_again and made.is_extractive:
        return 0
    lease.renew()
    longest = sizes_for(rules.token_limit).characters
    made = replace(made, entries=choose_entries(made.entries, longest=longest))
    try:
        if not made.entries:
            delete = rules.delete_messages and not lines
            summary_store.chunk_pass(chunk=chunk, lease=lease, delete_messages=delete)
            return 0
        before = _kept_before(chunk, rules, longest)
        summary_store.summary_store(
            chunk=chunk,
            lease=lease,
            made=made,
            kept=choose_entries([*before, *made.entries], longest=longest),
            skill_id=summarizer.skill.skill_id,
            delete_messages=rules.delete_messages,
            token_limit=rules.token_limit,
            now=timezone.now(),
        )
    except summary_store.ChunkChangedError as changed:
        logger.info("A summary is made again: %s.", changed)
        return 0
    lease.progress()
    return 1


def _kept_before(chunk: summary_store.Chunk, rules: SummaryRules, longest: int) -> list[Entry]:
    """Return the sentences that the session's last summary kept.

    If it is of an older version, they are chosen from its messages, portion by portion.
    """
    kept, until = summary_store.entries_before(chunk)
    messages = Message.objects.filter(session=chunk.session_id).exclude(role=Role.SUMMARY)
    place = 0
    while place < until:
        rows = messages.filter(order_num__gt=place, order_num__lte=until).defer("terms")
        portion = list(rows.order_by("order_num")[:PORTION])
        if not portion:
            break
        place = portion[-1].order_num
        new = find_entries(_said(portion, rules.user_role))
        kept = choose_entries([*kept, *new], longest=longest)
    return kept


def _model_or_excerpts(
    summarizer: Summarizer,
    lines: Sequence[Said],
    chunk: summary_store.Chunk,
    lease: summary_store.SummaryLease,
    rules: SummaryRules,
) -> Made:
    """Return what the model made, or excerpts if the model failed too often.

    Raises ChatModelError if it should be tried again later, and LeaseLostError.
    """
    try:
        return summarizer.digest(
            lines, longest=sizes_for(rules.token_limit).digest, renew=lease.renew
        )
    except ChatModelError as error:
        attempts = SummaryWork.objects.values_list("attempts", flat=True).get(pk=lease.session_id)
        if chunk.is_again or (not error.permanent and attempts < MAX_ATTEMPTS):
            raise
        logger.warning("The summary of session %s is made of excerpts: %s", lease.session_id, error)
        return extract(lines)


def _said(messages: Sequence[Message], user_role: str) -> list[Said]:
    return [
        Said(
            message.order_num,
            Line(speaker_of(message, user_role=user_role), text_with_reactions(message)),
            timezone.localdate(message.timestamp),
        )
        for message in messages
        if is_knowledge(message)
    ]
