"""Redact texts in everything that chats derived from them.

These are answers, commands, quotations, summaries, answers that wait to be sent, errors of
extraction, notes and raw deliveries. Replays have a module of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from memoryproject.foundation.retrieval.fragments import MARK
from sessions_app.conversations.facade import ChangeKind, Scopes, chat_scope, parse_command
from sessions_app.forgetting.redact_replays import replays_redact
from sessions_app.forgetting.sweep import ROWS_AT_ONCE, Sweep
from sessions_app.models import (
    ChatSession,
    ExtractionWork,
    InboundDelivery,
    Message,
    Note,
    OutboundPart,
    SummarizationMetadata,
)
from sessions_app.models.messages import Role

# Each round may find another text that repeats it; a chain of this length was never seen.
MAX_ROUNDS = 10


def chats_redact(sweep: Sweep, chat_ids: Collection[UUID], *, since: datetime) -> None:
    """Redact the texts in everything that these chats derived from them since then."""
    for _ in range(MAX_ROUNDS):
        if not _redact_once(sweep, chat_ids, since):
            return


def notes_redact(sweep: Sweep, chat_ids: Collection[UUID] | None = None) -> None:
    """Redact the notes of staff: in these chats also paraphrases, everywhere quotations.

    Raises ScopesGrewError if the chat of a note isn't locked.
    """
    notes = Note.objects.only("chat", "text")
    if chat_ids is not None:
        notes = notes.filter(chat__in=list(chat_ids))
    for note in notes.iterator(ROWS_AT_ONCE):
        if chat_ids is None and not sweep.texts.are_in(note.text):
            continue
        kept, removed = sweep.texts.cut(note.text)
        if removed:
            # Its author may be editing it, and another forgetting redacting it.
            sweep.held.require(Scopes(frozenset({chat_scope(note.chat_id)})))
            sweep.recorder.record(ChangeKind.NOTE, note.pk, note.text, left=kept)
            Note.objects.filter(pk=note.pk).update(text=kept)
            sweep.count_once(Note, note.pk)


def own_command_redact(sweep: Sweep) -> None:
    """Redact the command that asks for the forgetting, because it names the text."""
    if not sweep.keep_turn:
        return
    commands = Message.objects.filter(turn__pk=sweep.keep_turn, metadata__has_key="command")
    for message in commands.select_related("chat", "session"):
        _redact_command(sweep, message)


def deliveries_redact(sweep: Sweep, deliveries: QuerySet[InboundDelivery], since: datetime) -> None:
    """Empty the deliveries that hold the texts: a later message may quote an earlier one."""
    delivered = deliveries.filter(received_at__gte=since).filter(
        Q(raw__isnull=False) | Q(change__isnull=False)
    )
    holding = [
        delivery.pk
        for delivery in delivered.only("raw", "change").iterator(ROWS_AT_ONCE)
        if sweep.texts.cleaned([delivery.raw, delivery.change]) != [delivery.raw, delivery.change]
    ]
    sweep.empty_deliveries(InboundDelivery.objects.filter(pk__in=holding))


def _redact_once(sweep: Sweep, chat_ids: Collection[UUID], since: datetime) -> bool:
    """Make one pass over everything; return whether it found further texts to search for."""
    further = False
    affected = replays_redact(sweep, chat_ids, since)
    messages = Message.objects.filter(chat_id__in=list(chat_ids), received_at__gte=since)
    for message in _in_batches(messages.filter(role=Role.ASSISTANT)):
        may_repeat = message.pk in affected or "system_text" in message.metadata
        if may_repeat or sweep.texts.are_in(message.content):
            further |= _redact_answer(sweep, message)
    for message in messages.filter(metadata__has_key="quoted").only("metadata"):
        quoted = message.metadata["quoted"]
        if sweep.texts.cleaned(quoted) != quoted:
            sweep.remove_quote(message)
    for message in _in_batches(messages.filter(metadata__has_key="command")):
        if sweep.texts.are_in(message.content):
            _redact_command(sweep, message)
    further |= _retract_summaries(sweep, chat_ids)
    _redact_extractions(sweep, chat_ids)
    _redact_parts(sweep, chat_ids)
    notes_redact(sweep, chat_ids)
    deliveries_redact(sweep, InboundDelivery.objects.filter(chat__in=list(chat_ids)), since)
    return further


def _redact_answer(sweep: Sweep, message: Message) -> bool:
    """Redact an answer that repeats the texts; return whether further texts were found."""
    kept, removed = sweep.cut(message.content, in_reach=message.pk in sweep.reached)
    if not removed:
        return False
    sweep.recorder.record(ChangeKind.ANSWER, message.pk, message.content, left=kept)
    sweep.delete_card(message.session)
    for summary in sweep.chat_memory.retext(message=message, content=kept):
        sweep.texts.add_quoted(summary)
    sweep.count_once(Message, message.pk)
    further = False
    for text in removed:
        further |= sweep.texts.add(text)
    return further


def _redact_command(sweep: Sweep, message: Message) -> None:
    """Redact the argument of a command such as /search or /forget."""
    command = parse_command(message.content, in_group=message.chat.is_group)
    name = command.name if command else message.metadata["command"]
    sweep.delete_card(message.session)
    left = f"/{name} {MARK}"
    sweep.recorder.record(ChangeKind.COMMAND, message.pk, message.content, left=left)
    sweep.chat_memory.retext(message=message, content=left)
    sweep.empty_deliveries(InboundDelivery.objects.filter(message=message))
    sweep.count_once(Message, message.pk)


def _retract_summaries(sweep: Sweep, chat_ids: Collection[UUID]) -> bool:
    """Retract the summaries that repeat the texts; they are made again from the rest.

    Returns whether any was retracted.
    """
    further = False
    records = SummarizationMetadata.objects.filter(session__chat_id__in=list(chat_ids))
    summaries = records.select_related("summary_message").order_by("session", "number")
    for record in list(summaries):
        texts = (record.digest, record.chapter, record.summary_message.content)
        if not any(sweep.texts.are_in(text) for text in texts):
            continue
        if not SummarizationMetadata.objects.filter(pk=record.pk).exists():
            continue  # It was retracted with an earlier one.
        session = ChatSession.objects.select_for_update(no_key=True).get(pk=record.session_id)
        sweep.retract_summaries(session, record.last_order)
        sweep.chat_memory.manage_after_commit(session)
        further = True
    return further


def _redact_extractions(sweep: Sweep, chat_ids: Collection[UUID]) -> None:
    """Redact errors of extraction, because a model's server may quote its input in them."""
    failed = ExtractionWork.objects.filter(turn__chat_id__in=list(chat_ids)).exclude(error="")
    for work in failed.only("error"):
        if sweep.texts.are_in(work.error):
            ExtractionWork.objects.filter(pk=work.pk).update(error=MARK)
            sweep.count_once(ExtractionWork, work.pk)


def _redact_parts(sweep: Sweep, chat_ids: Collection[UUID]) -> None:
    """Redact answers that wait to be sent, and those that may have been sent."""
    parts = OutboundPart.objects.filter(turn__chat_id__in=list(chat_ids)).exclude(content="")
    for part in parts.select_related("turn").iterator(ROWS_AT_ONCE):
        kept, removed = sweep.cut(part.content, in_reach=part.turn.reply_id in sweep.reached)
        if removed:
            sweep.recorder.record(ChangeKind.PART, part.pk, part.content, left=kept)
            OutboundPart.objects.filter(pk=part.pk).update(content=kept)
            sweep.count_once(OutboundPart, part.pk)


def _in_batches(messages: QuerySet[Message]) -> Iterable[Message]:
    return (
        messages.select_related("chat", "session")
        .defer("terms")
        .order_by("pk")
        .iterator(ROWS_AT_ONCE)
    )
