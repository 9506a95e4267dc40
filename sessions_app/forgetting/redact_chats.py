"""Redact what chats kept of erased texts besides their answers.

These are messages of the assistant that no turn made, quotations, notes and raw deliveries. They
have no record of their source: those that quote a text which was said or shown in their chat
before are taken to have it from there. People's own messages stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from uuid import UUID

from django.db.models import Q, QuerySet

from memoryproject.foundation.retrieval.fragments import Fragments
from sessions_app.conversations.facade import ChangeKind
from sessions_app.forgetting.redact_answers import AnswerRedaction, command_redact
from sessions_app.forgetting.sweep import ROWS_AT_ONCE, Lineage, Sweep, Trace
from sessions_app.models import InboundDelivery, Message, Note
from sessions_app.models.messages import Role


def chats_redact(sweep: Sweep, lineage: Lineage) -> list[AnswerRedaction]:
    """Redact everything that the chats of the plan derived from the erased texts.

    Returns the redactions of the answers of each chat.
    """
    redactions = []
    for chat_id in sorted(sweep.plan.chats):
        redactions.append(AnswerRedaction(sweep, lineage, chat_id))
        redactions[-1].redact()
        for kept in kept_texts(sweep, chat_id):
            kept.remove()
    return redactions


def own_command_redact(sweep: Sweep) -> None:
    """Redact the command that asks for the forgetting, because it names the text."""
    if not sweep.keep_turn:
        return
    commands = Message.objects.filter(turn__pk=sweep.keep_turn, metadata__has_key="command")
    for message in commands.select_related("chat", "session"):
        command_redact(sweep, message)


def kept_texts(sweep: Sweep, chat_id: UUID) -> Iterator[Trace]:
    """Yield the quotations in a chat of what was said or shown there."""
    found, since = Fragments(sweep.plan.texts_by_chat[chat_id]), sweep.plan.since
    if not found or since is None:
        return
    messages = Message.objects.filter(chat=chat_id, received_at__gte=since)
    for message in _in_batches(_without_turn(messages)):
        left = found.quotes_cut(message.content)
        if left != message.content:
            change = partial(sweep.retext, message, ChangeKind.ANSWER, left)
            yield Trace(Message, message.pk, change)
    for message in messages.filter(metadata__has_key="quoted").only("metadata"):
        quoted = message.metadata["quoted"]
        if found.cleaned(quoted) != quoted:
            yield Trace(Message, message.pk, partial(sweep.remove_quote, message))
    # Staff write them with the conversation before their eyes, in their own words, too.
    for note in Note.objects.filter(chat=chat_id, created_at__gte=since).only("text"):
        left, removed = found.cut(note.text)
        if removed:
            yield Trace(Note, note.pk, partial(_redact_note, sweep, note, left))
    for key in _holding(InboundDelivery.objects.filter(chat=chat_id), found, since):
        rows = InboundDelivery.objects.filter(pk=key)
        yield Trace(InboundDelivery, key, partial(sweep.empty_deliveries, rows))


def _without_turn(messages: QuerySet[Message]) -> QuerySet[Message]:
    """Return the assistant's messages that no turn made: imported, by staff, from the phone."""
    by_hand = Q(replied_turn=None) | Q(replied_turn__by_hand=True)
    return messages.filter(by_hand, role=Role.ASSISTANT)


def _redact_note(sweep: Sweep, note: Note, left: str) -> None:
    sweep.recorder.record(ChangeKind.NOTE, note.pk, note.text, left=left)
    Note.objects.filter(pk=note.pk).update(text=left)
    sweep.count_once(Note, note.pk)


def _holding(
    deliveries: QuerySet[InboundDelivery], found: Fragments, since: datetime
) -> Iterator[int]:
    """Yield the deliveries that hold the texts, except those of messages that say it themselves."""
    delivered = deliveries.filter(received_at__gte=since).filter(
        Q(raw__isnull=False) | Q(change__isnull=False)
    )
    rows = delivered.select_related("message").only("raw", "change", "message__content")
    for delivery in rows.iterator(ROWS_AT_ONCE):
        values = [delivery.raw, delivery.change]
        own = delivery.message.content if delivery.message is not None else ""
        if found.cleaned(values) != values and not found.are_in(own):
            yield delivery.pk


def _in_batches(messages: QuerySet[Message]) -> Iterable[Message]:
    return (
        messages.select_related("chat", "session")
        .defer("terms")
        .order_by("pk")
        .iterator(ROWS_AT_ONCE)
    )
