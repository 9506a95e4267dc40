"""Merge two chats that turn out to belong to one person."""

from __future__ import annotations

import logging
from typing import Any

from django.utils import timezone

from cards_app.services.cards import cards_move
from memories_app.store.facade import memories_move
from memoryproject.foundation.audit.audit_events import person_merge
from memoryproject.foundation.outgoing_webhooks.deliveries import deliveries_move
from memoryproject.foundation.outgoing_webhooks.endpoints import endpoints_move
from memoryproject.foundation.rest_kit.tokens import tokens_move
from sessions_app.conversations.facade import activity_recount, session_end
from sessions_app.inbox.facade import review_move
from sessions_app.limits.facade import access_merge, usage_merge
from sessions_app.models import (
    Chat,
    ChatAddress,
    ChatSession,
    ForgetReceipt,
    InboundDelivery,
    Message,
    TranscriptBatch,
    Turn,
)
from sessions_app.models.sessions import SessionStatus
from sessions_app.models.turn_states import turns_move
from sessions_app.models.turns import TurnState
from sessions_app.turns.facade import pauses_merge

logger = logging.getLogger(__name__)


def chats_merge(*, one: Chat, other: Chat, **_signal: Any) -> Chat:
    """Receive ``one_person_found``."""
    return chat_merge(one, other)


def chat_merge(one: Chat, other: Chat) -> Chat:
    """Move everything of the younger chat into the older one and return the older one.

    The newer active session stays active. Call it in a transaction that holds the lock of the
    chats' addresses.
    """
    if one.pk == other.pk:
        return one
    old, young = sorted([one, other], key=lambda chat: (chat.created_at, chat.id))
    # Before the sessions, so that staff can't pause or reply in one of the chats meanwhile.
    list(
        Chat.objects.select_for_update(no_key=True).filter(pk__in=[old.pk, young.pk]).order_by("pk")
    )
    active = ChatSession.objects.select_for_update(no_key=True).filter(
        chat__in=[old, young], status=SessionStatus.ACTIVE
    )
    for session in active.order_by("-last_active", "-created_at")[1:]:
        session_end(session=session, at=timezone.now())
    # A worker that is answering in the younger chat loses the lease and will not write.
    running = Turn.objects.filter(chat=young, state=TurnState.RUNNING)
    turns_move(running, TurnState.PENDING, lease_token=None, lease_until=None)
    review_move(from_chat=young.pk, to_chat=old.pk)
    # Turns before messages: the order in which a worker that is sending locks.
    moved = (ChatSession, Turn, Message, InboundDelivery, ChatAddress, TranscriptBatch)
    for model in moved:
        model._default_manager.filter(chat=young).update(chat=old)
    ForgetReceipt.objects.filter(chat_id=young.pk).update(chat_id=old.pk)
    pauses_merge(old=old, young=young, now=timezone.now())
    access_merge(old=old, young=young)
    usage_merge(old=old, young=young)
    # Before its memories: endpoints that were notified of the younger chat are notified that they
    # moved.
    endpoints_move(from_chat=young.pk, to_chat=old.pk)
    deliveries_move(from_chat=young.pk, to_chat=old.pk)
    memories_move(from_chat=young.pk, to_chat=old.pk)
    cards_move(from_chat=young.pk, to_chat=old.pk)
    tokens_move(from_chat=young.pk, to_chat=old.pk)
    person_merge(kept=old.pk, gone=young.pk)
    if young.memory_enabled is False:
        # Memory that was switched off stays off.
        old.memory_enabled = False
    old.client_name = old.client_name or young.client_name
    old.staff_name = old.staff_name or young.staff_name
    main, phone = young.whatsapp_chat, young.client_phone
    young.delete()
    if phone and not old.client_phone:
        old.whatsapp_chat, old.client_phone = main, phone
    old.save()
    activity_recount(chat_ids=[old.pk])
    logger.info("A chat was merged into %s: one person.", old.id)
    return old
