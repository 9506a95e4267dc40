"""Delete messages with what hangs on them: vectors, notes, quotations, summaries, waiting turns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from django.apps import apps
from django.db.models import QuerySet, Sum

from sessions_app.conversations.facade import ChangeKind
from sessions_app.forgetting.sweep import Sweep
from sessions_app.models import ChatSession, InboundDelivery, Message, MessageEmbedding, Note, Turn
from sessions_app.models.turn_states import turns_move
from sessions_app.models.turns import ANSWERABLE_STATES, TurnState


def messages_delete(sweep: Sweep, messages: QuerySet[Message]) -> None:
    """Delete messages with their vectors and raw deliveries.

    Summaries that cover them are retracted, and turns that wait to answer them are cancelled.
    """
    found = list(messages.order_by("session_id", "order_num").defer("terms"))
    ids = [message.pk for message in found]
    if not ids:
        return
    sweep.emptied_chats.update(message.chat_id for message in found)
    _delete_notes(sweep, ids)
    waiting = Turn.objects.filter(message__in=ids, state__in=ANSWERABLE_STATES)
    turns_move(
        waiting.exclude(pk=sweep.keep_turn),
        TurnState.CANCELLED,
        finished_at=sweep.now,
        lease_token=None,
    )
    sweep.empty_deliveries(InboundDelivery.objects.filter(message__in=ids))
    for message in found:
        sweep.recorder.record(ChangeKind.MESSAGE, message.pk, message.content)
        if message.provider_message_id:
            sweep.deleted_messages.add((message.provider, message.provider_message_id))
    _remove_quotes(sweep, found)
    first: dict[UUID, int] = {}
    for message in found:
        first.setdefault(message.session_id, message.order_num)
    sessions = ChatSession.objects.select_for_update(no_key=True).filter(pk__in=first)
    locked = list(sessions.order_by("pk"))
    messages_lock(Message.objects.filter(pk__in=ids))
    for session in locked:
        _delete_in_session(sweep, session, first[session.pk], ids)
    sweep.count(Message, len(ids))


def messages_lock(messages: QuerySet[Message]) -> None:
    """Lock messages, after their sessions, before their rows and those that hang on them go.

    A worker that is adding their vectors ends first, and no other one begins. It locks messages in
    the same order.
    """
    rows = messages.select_for_update().order_by("order_num", "pk")
    list(rows.values_list("pk", flat=True))


def _delete_notes(sweep: Sweep, message_ids: Sequence[UUID]) -> None:
    notes = Note.objects.filter(message__in=message_ids)
    for key, text in notes.values_list("pk", "text"):
        sweep.recorder.record(ChangeKind.NOTE, key, text)
    deleted, _ = notes.delete()
    sweep.count(Note, deleted)


def _delete_in_session(
    sweep: Sweep, session: ChatSession, first_order: int, message_ids: Sequence[UUID]
) -> None:
    """Delete those of the messages that are in this session; ``first_order`` is the first one's."""
    sweep.retract_summaries(session, first_order)
    sweep.delete_card(session)
    here = Message.objects.filter(pk__in=message_ids, session=session)
    in_window = here.filter(order_num__gte=session.window_start)
    session.total_tokens -= in_window.aggregate(all=Sum("tokens"))["all"] or 0
    session.save(update_fields=["total_tokens"])
    _count_deleted(sweep, here.delete()[1])
    sweep.chat_memory.manage_after_commit(session)


def _count_deleted(sweep: Sweep, rows: dict[str, int]) -> None:
    """Count the rows that were deleted by cascade and aren't counted elsewhere."""
    for label, count in rows.items():
        model = apps.get_model(label)
        if model not in (Message, MessageEmbedding):
            sweep.count(model, count)


def _remove_quotes(sweep: Sweep, deleted: Collection[Message]) -> None:
    """Remove quotations of the messages from the remaining ones, which keep their own words."""
    by_chat: dict[UUID, list[str]] = {}
    for message in deleted:
        if message.provider_message_id:
            by_chat.setdefault(message.chat_id, []).append(message.provider_message_id)
    ids = [message.pk for message in deleted]
    for chat_id, keys in by_chat.items():
        quoting = Message.objects.filter(
            chat_id=chat_id, metadata__has_key="quoted", metadata__reply_to_id__in=keys
        )
        for message in quoting.exclude(pk__in=ids).only("metadata"):
            sweep.remove_quote(message)
