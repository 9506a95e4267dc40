"""Apply changes that people make to stored messages: edit, revoke, react.

Webhooks come in any order, so a change may arrive before its message. It is then kept as a delivery
and applied when the message is stored.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from django.db.models import CharField

from memories_app.documents.facade import message_documents_forget
from memories_app.store.facade import memories_retract
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.compiled_sql import Given, compiled, read_prepared
from memoryproject.foundation.integrations.whatsapp.events import (
    MessageEdited,
    MessageRevoked,
    Party,
    Reaction,
)
from sessions_app.cards.facade import cards_retract
from sessions_app.conversations.facade import text_redact, unstored_forget
from sessions_app.extraction.facade import extraction_repeat
from sessions_app.history.facade import ChatMemoryService
from sessions_app.media.dependencies import remove_after_commit
from sessions_app.media.facade import media_detach
from sessions_app.models import Chat, ChatSession, InboundDelivery, Message, Turn
from sessions_app.models.turn_states import turns_move
from sessions_app.models.turns import TurnState

logger = logging.getLogger(__name__)

OPEN_STATES = (TurnState.PENDING, TurnState.RUNNING, TurnState.DEFERRED, TurnState.HELD)
NOT_BEGUN = (TurnState.PENDING, TurnState.DEFERRED, TurnState.HELD)

ELSEWHERE = "not done: its message is in another chat"

Change = MessageEdited | MessageRevoked | Reaction


@dataclass(frozen=True)
class Changed:
    """The result of a change, in words.

    ``pending`` is stored with the delivery and applied when the message arrives. ``forget``:
    nothing of the event is stored.
    """

    text: str
    pending: dict[str, Any] | None = None
    forget: bool = False


def change_apply(
    *,
    event: Change,
    chat: Chat | None,
    chat_memory: ChatMemoryService,
    memory_enabled: bool,
    now: datetime,
) -> Changed:
    """Apply a change to its message.

    Call it in a transaction. ``chat`` is where the change was made, or None where the address
    belongs to nobody by now. A message of another person's chat stays unchanged, whatever id the
    event names.
    """
    target = event.target_id if isinstance(event, Reaction) else event.original_id
    found = Message.objects.filter(
        provider=event.provider, number_id=event.number_id, provider_message_id=target
    ).first()
    if found is None:
        return _change_unstored(event, target, chat, memory_enabled=memory_enabled)
    if not (_is_there(found.chat_id, chat) or _is_by_its_people(found, event, chat)):
        logger.warning("A change in chat %s names a message of another chat.", chat and chat.pk)
        return Changed(ELSEWHERE)
    # Session before message: the order in which all code locks.
    ChatSession.objects.select_for_update(no_key=True).get(pk=found.session_id)
    message = Message.objects.select_for_update(no_key=True).get(pk=found.pk)
    return Changed(_apply(event, message, chat_memory, now))


def early_changes_apply(
    *, message: Message, party: Party, chat_memory: ChatMemoryService, now: datetime
) -> None:
    """Apply the changes that arrived before their message.

    ``party`` is the person or group whose conversation the message names.
    """
    # Hardly ever is there one.
    given = {"provider": message.provider, "message_id": message.provider_message_id or ""}
    keys = [key for (key,) in read_prepared(_early_changes(), given)]
    if not keys:
        return
    found = InboundDelivery.objects.filter(pk__in=keys).select_related("chat")
    for delivery in found.order_by("id"):
        change = delivery.change or {}
        if not _is_of(delivery, change, message, party):
            continue
        if delivery.event == "MessageRevoked":
            message_revoke(message=message, chat_memory=chat_memory, now=now)
        elif delivery.event == "MessageEdited":
            message_edit(message=message, content=change["text"], chat_memory=chat_memory, now=now)
        else:
            _react(message, change["who"], change["emoji"])
        delivery.change = None
        delivery.save(update_fields=["change"])


@cache
def _early_changes() -> str:
    early = InboundDelivery.objects.filter(
        provider=Given("provider", CharField()),
        subject_id=Given("message_id", CharField()),
        event__in=["MessageEdited", "MessageRevoked", "Reaction"],
        change__isnull=False,
    ).exclude(subject_id="")  # as the index
    return compiled(early.order_by().values_list("pk"))


def message_edit(
    *,
    message: Message,
    content: str,
    chat_memory: ChatMemoryService,
    now: datetime,
    media: dict[str, str] | None = None,
) -> None:
    """Replace the text; the old text goes into the message's history.

    A revoked message stays revoked: edits can arrive late.
    """
    if message.revoked_at or content == message.content:
        return
    message.history = [*message.history, {"content": message.content, "until": now.isoformat()}]
    chat_memory.retext(message=message, content=content)
    message.edited_at = now
    if media:
        message.media = media
    message.save()
    person = Actor("person", chat_id=message.chat_id)
    memories_retract(message_id=message.pk, actor=person)
    extraction_repeat(message)


def message_revoke(*, message: Message, chat_memory: ChatMemoryService, now: datetime) -> None:
    """Remove the text everywhere it was kept because of this message.

    A turn that has not answered the message yet is cancelled.
    """
    texts = [message.content, *(entry["content"] for entry in message.history)]
    texts += chat_memory.retext(message=message, content="")
    message.history = []
    message.media = {}
    message.image_path = None
    message.metadata = {}
    message.revoked_at = now
    message.save()
    media_detach([message.pk])
    remove_after_commit()
    open_turns = Turn.objects.filter(message=message, state__in=OPEN_STATES)
    turns_move(open_turns, TurnState.CANCELLED, finished_at=now, lease_token=None)
    text_redact(message=message, texts=texts)
    cards_retract(chat_id=message.chat_id, session_ids=[message.session_id])
    person = Actor("person", chat_id=message.chat_id)
    message_documents_forget(message_id=message.pk, actor=person)
    memories_retract(message_id=message.pk, actor=person)


def _apply(event: Change, message: Message, chat_memory: ChatMemoryService, now: datetime) -> str:
    if isinstance(event, MessageRevoked):
        message_revoke(message=message, chat_memory=chat_memory, now=now)
        return "revoked"
    if isinstance(event, MessageEdited):
        media = event.media.as_dict() if event.media else None
        message_edit(
            message=message, content=event.text, chat_memory=chat_memory, now=now, media=media
        )
        return "edited"
    _react(message, _who(event), event.emoji)
    return "reaction stored" if event.emoji else "reaction taken away"


def _is_of(
    delivery: InboundDelivery, change: dict[str, Any], message: Message, party: Party
) -> bool:
    """Return whether an early change was made in the chat of the message.

    If a number changed hands between the two, each leads to another chat, so the change's address
    counts as well. The address of a person in a group doesn't count, since the same person writes
    in other chats.
    """
    if delivery.chat is None or delivery.chat.pk == message.chat_id:
        return True
    one_to_one = not (delivery.chat.is_group or message.chat.is_group)
    return one_to_one and not set(change.get("by", [])).isdisjoint(party.addresses())


def _is_there(chat_id: UUID, chat: Chat | None) -> bool:
    return chat is None or chat.pk == chat_id


def _is_by_its_people(message: Message, event: Change, chat: Chat | None) -> bool:
    """Return whether the change comes from an address that the message came from or went to.

    The address led to the message's chat then and leads to another one now. For groups, see _is_of.
    """
    if message.chat.is_group or (chat and chat.is_group):
        return False
    return not {message.sender, message.recipient}.isdisjoint(event.party.addresses())


def _change_unstored(
    event: Change, target: str, chat: Chat | None, *, memory_enabled: bool
) -> Changed:
    """Handle a change whose message isn't stored.

    The message may be on its way, or memory is off and the message is stored in its turn only.
    """
    turn = Turn.objects.filter(
        provider=event.provider,
        number_id=event.number_id,
        provider_message_id=target,
        session__isnull=True,
    ).first()
    if turn is not None and not _is_there(turn.chat_id, chat):
        return Changed(ELSEWHERE, forget=True)
    if turn is not None:
        _change_turn(event, turn)
        return Changed("applied to the turn", forget=True)
    if not memory_enabled:
        return Changed("memory is off: nothing to change", forget=True)
    pending: dict[str, Any]
    if isinstance(event, MessageRevoked):
        pending = {"revoked": "yes"}
    elif isinstance(event, MessageEdited):
        pending = {"text": event.text}
    else:
        pending = {"who": _who(event), "emoji": event.emoji}
    pending["by"] = event.party.addresses()
    return Changed("its message is not here (yet)", pending)


def _change_turn(event: Change, turn: Turn) -> None:
    """Apply a change to a turn without memory; a turn that is over stores nothing of it."""
    same = Turn.objects.filter(pk=turn.pk)
    if isinstance(event, MessageEdited):
        same.filter(state__in=NOT_BEGUN).update(unstored_text=event.text)
    elif isinstance(event, MessageRevoked):
        turns_move(
            same.filter(state__in=OPEN_STATES),
            TurnState.CANCELLED,
            finished_at=event.timestamp,
            lease_token=None,
        )
    turn.refresh_from_db()
    if turn.finished_at is not None:
        unstored_forget(turn)


def _react(message: Message, who: str, emoji: str) -> None:
    reactions = {**message.metadata.get("reactions", {}), who: emoji}
    message.metadata["reactions"] = {key: value for key, value in reactions.items() if value}
    message.save(update_fields=["metadata"])


def _who(event: Reaction) -> str:
    addresses = event.party.addresses()
    return addresses[0] if addresses else "unknown"
