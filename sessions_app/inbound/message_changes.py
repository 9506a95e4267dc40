"""Apply changes that people make to stored messages: edit, revoke, react.

Webhooks come in any order, so a change may arrive before its message. It is then kept as a delivery
and applied when the message is stored.
"""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from memories_app.documents.document_store import message_documents_forget
from memories_app.store.retract import memories_retract
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.whatsapp import events
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import address_forms, all_forms
from sessions_app.cards.card_recall import cards_retract
from sessions_app.conversations import chat_addresses, redact_derived, session_lifecycle
from sessions_app.conversations.message_text import QUOTED, quote_of, row_by_token, row_of
from sessions_app.extraction.facade import extraction_repeat
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.limits.intake import UsageLimits, access_of, change_count
from sessions_app.media.dependencies import remove_after_commit
from sessions_app.media.fetch import media_detach
from sessions_app.models import Chat, ChatSession, InboundDelivery, Message, OutboundPart, Turn
from sessions_app.models.chats import GODFATHER
from sessions_app.models.deliveries import EventResult
from sessions_app.models.messages import REACTED_AT, Role, has_token_of
from sessions_app.models.turns import TurnState, turns_move

logger = logging.getLogger(__name__)

OPEN_STATES = (TurnState.PENDING, TurnState.RUNNING, TurnState.DEFERRED, TurnState.HELD)
NOT_BEGUN = (TurnState.PENDING, TurnState.DEFERRED, TurnState.HELD)

ELSEWHERE = "not done: its message is in another chat"
OVER_THE_LIMIT = "not done: the chat has reached its limit of messages an hour"

VOTES_WITHIN = timedelta(days=7)

# Of the texts before an edit the first and the newest are kept, within this length in all.
MAX_VERSIONS = 10
MAX_HISTORY_LENGTH = 200_000

Change = events.MessageEdited | events.MessageRevoked | events.Reaction


def change_apply(
    *,
    event: Change,
    chat: Chat | None,
    chat_memory: ChatMemoryService,
    memory_enabled: bool,
    limits: UsageLimits,
    now: datetime,
) -> EventResult:
    """Apply a change to its message.

    Call it in a transaction. ``chat`` is where the change was made, or None where the address
    belongs to nobody. A message of another person's chat stays unchanged, whatever id the event
    names.

    A change counts as a message. Over the limit a revocation is still obeyed, and nothing else.
    """
    target = event.target_id if isinstance(event, events.Reaction) else event.original_id
    messages = Message.objects.filter(provider=event.provider, number_id=event.number_id)
    found = row_of(messages, target, chat_id=chat.pk if chat else None)
    is_ours = (
        found is not None and found.role != Role.USER and not isinstance(event, events.Reaction)
    )
    if chat is not None and not is_ours:
        is_within = _count(chat, chat_memory, limits, now)
        if not is_within and not isinstance(event, events.MessageRevoked):
            return EventResult(OVER_THE_LIMIT, chat, is_kept=False)
    if found is None:
        return _change_unstored(event, target, chat, memory_enabled=memory_enabled)
    is_there = chat is not None and chat.pk == found.chat_id
    if not (is_there or _is_by_its_people(found, event, chat)):
        logger.warning("A change in chat %s names a message of another chat.", chat and chat.pk)
        return EventResult(ELSEWHERE, chat)
    # Session before message: the order in which all code locks.
    ChatSession.objects.select_for_update(no_key=True).get(pk=found.session_id)
    message = Message.objects.select_for_update(no_key=True).get(pk=found.pk)
    text, rest = _apply(event, message, chat_memory, now)
    known_as = message.provider_message_id or ""
    return EventResult(text, message.chat, subject_id=known_as, change=rest)


def _count(chat: Chat, chat_memory: ChatMemoryService, limits: UsageLimits, now: datetime) -> bool:
    """Count a change in the chat; return whether it is within the chat's limit of an hour."""
    # Chat before session: the order in which all code locks.
    locked = Chat.objects.select_for_update(no_key=True, of=("self",)).select_related("access")
    chat = locked.get(pk=chat.pk)
    if chat_memory.role_in(chat) == GODFATHER:
        return True
    return change_count(access=access_of(chat), limits=limits, now=now)


def early_changes(provider: str, message_id: str) -> QuerySet[InboundDelivery]:
    """Return the changes of a message that may have arrived before it."""
    return InboundDelivery.objects.filter(
        # Empty ids are not in the index.
        (Q(subject_id=message_id) & ~Q(subject_id="")) | has_token_of("subject_id", message_id),
        provider=provider,
        event__in=["MessageEdited", "MessageRevoked", "Reaction"],
        change__isnull=False,
    )


def early_changes_apply(
    *, message: Message, party: events.Party, chat_memory: ChatMemoryService, now: datetime
) -> None:
    """Apply the changes that arrived before their message.

    ``party`` is the person or group whose conversation the message names.
    """
    message_id = message.provider_message_id or ""
    for delivery in early_changes(message.provider, message_id).order_by("id"):
        change = delivery.change or {}
        if redact_derived.REDACT in change or not _is_of(delivery, change, message, party):
            continue
        # Nothing was derived from a message that comes only now.
        if delivery.event == "MessageRevoked":
            message_revoke(message=message, chat_memory=chat_memory, now=now)
        elif delivery.event == "MessageEdited":
            message_edit(message=message, content=change["text"], chat_memory=chat_memory, now=now)
        else:
            _react(message, change["who"], change["emoji"], now)
        delivery.change = None
        delivery.subject_id = message_id
        delivery.save(update_fields=["change", "subject_id"])


def message_edit(
    *,
    message: Message,
    content: str,
    chat_memory: ChatMemoryService,
    now: datetime,
    media: dict[str, str] | None = None,
) -> dict[str, Any] | None:
    """Replace the text; the old text goes into the message's history.

    A revoked message stays revoked: edits can arrive late. Of a text that leaves the history
    nothing is kept elsewhere, since a revocation could not find it any more. Returns what a worker
    has still to redact.
    """
    if message.revoked_at or content == message.content:
        return None
    left = {"content": message.content, "until": now.isoformat()}
    message.history, gone = _bounded([*message.history, left])
    chat_memory.retext(message=message, content=content)
    message.edited_at = now
    if media:
        message.media = media
    message.save()
    person = Actor("person", chat_id=message.chat_id)
    memories_retract(message_id=message.pk, actor=person)
    extraction_repeat(message)
    kept = {content, *(entry["content"] for entry in message.history)}
    return redact_derived.texts_redact(
        message=message, texts=[text for text in gone if text not in kept]
    )


def vote_replace(
    *, event: events.InboundMessage, chat: Chat, chat_memory: ChatMemoryService, now: datetime
) -> EventResult | None:
    """Let a vote take the place of the person's earlier one in the poll, unless that is answered.

    None: it is a message of its own. A vote that comes after a newer one says nothing any more.
    """
    vote = event.metadata.get("vote")
    if not vote:
        return None
    votes = Message.objects.filter(chat=chat, kind=event.kind, metadata__vote__poll=vote["poll"])
    by_same = votes.filter(sender__in=event.party.addresses(), received_at__gte=now - VOTES_WITHIN)
    earlier = by_same.filter(revoked_at=None).order_by("-timestamp", "-order_num").first()
    if earlier is None:
        return None
    if earlier.timestamp > event.timestamp:
        return EventResult("ignored: the person has voted anew since", chat, earlier.pk)
    if Turn.objects.filter(message=earlier).exclude(state__in=NOT_BEGUN).exists():
        return None
    # Session before message: the order in which all code locks.
    ChatSession.objects.select_for_update(no_key=True).get(pk=earlier.session_id)
    message = Message.objects.select_for_update(no_key=True).get(pk=earlier.pk)
    message.metadata["vote"] = vote
    message_edit(message=message, content=event.text, chat_memory=chat_memory, now=now)
    return EventResult("edited", chat, message.pk)


def _bounded(history: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the history without the versions that are too many, and the texts of these.

    The entry after them says in ``left_out`` how many they were.
    """
    kept, gone = list(history), []
    while len(kept) > 2 and (
        len(kept) > MAX_VERSIONS
        or sum(len(entry["content"]) for entry in kept) > MAX_HISTORY_LENGTH
    ):
        left = kept.pop(1)
        gone.append(left["content"])
        count = left.get("left_out", 0) + kept[1].get("left_out", 0) + 1
        kept[1] = {**kept[1], "left_out": count}
    return kept, gone


def message_revoke(
    *, message: Message, chat_memory: ChatMemoryService, now: datetime
) -> dict[str, Any] | None:
    """Remove the text everywhere it was kept because of this message.

    A turn that has not answered the message yet is cancelled. Returns what a worker has still to
    redact.
    """
    if message.revoked_at:
        return None
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
    rest = redact_derived.text_redact(message=message, texts=texts)
    cards_retract(chat_id=message.chat_id, session_ids=[message.session_id])
    person = Actor("person", chat_id=message.chat_id)
    message_documents_forget(message_id=message.pk, actor=person)
    memories_retract(message_id=message.pk, actor=person)
    return rest


def _apply(
    event: Change, message: Message, chat_memory: ChatMemoryService, now: datetime
) -> tuple[str, dict[str, Any] | None]:
    """Apply the change; return what was done, and what a worker has still to redact."""
    if isinstance(event, events.MessageRevoked):
        return "revoked", message_revoke(message=message, chat_memory=chat_memory, now=now)
    if isinstance(event, events.MessageEdited):
        media = event.media.as_dict() if event.media else None
        return "edited", message_edit(
            message=message, content=event.text, chat_memory=chat_memory, now=now, media=media
        )
    _react(message, _who(event), event.emoji, now)
    return "reaction stored" if event.emoji else "reaction taken away", None


def _is_of(
    delivery: InboundDelivery, change: dict[str, Any], message: Message, party: events.Party
) -> bool:
    """Return whether an early change was made in the chat of the message.

    If a number changed hands between the two, each leads to another chat, so the change's address
    counts as well. The address of a person in a group doesn't count, since the same person writes
    in other chats.
    """
    by = all_forms(change.get("by", []))
    if delivery.chat and delivery.chat.pk == message.chat_id:
        return True
    if message.chat.is_group:
        return message.chat.whatsapp_chat in by
    return not (delivery.chat and delivery.chat.is_group) and not by.isdisjoint(party.addresses())


def _is_by_its_people(message: Message, event: Change, chat: Chat | None) -> bool:
    """Return whether the change comes from an address that the message came from or went to.

    The address led to the message's chat then and leads to another one now. For groups, see _is_of.
    """
    if message.chat.is_group or (chat and chat.is_group):
        return False
    return not {message.sender, message.recipient}.isdisjoint(all_forms(event.party.addresses()))


def _change_unstored(
    event: Change, target: str, chat: Chat | None, *, memory_enabled: bool
) -> EventResult:
    """Handle a change whose message isn't stored.

    The message may be on its way, or memory is off and the message is stored in its turn only.
    """
    turns = Turn.objects.filter(
        provider=event.provider, number_id=event.number_id, session__isnull=True
    )
    waiting = turns.filter(state__in=OPEN_STATES)
    turn = turns.filter(provider_message_id=target).first() or row_by_token(
        waiting, target, chat_id=chat.pk if chat else None
    )
    if turn is not None and (chat is None or turn.chat_id != chat.pk):
        return EventResult(ELSEWHERE, chat, is_kept=False)
    if turn is not None:
        _change_turn(event, turn)
        return EventResult("applied to the turn", chat, is_kept=False)
    if not memory_enabled:
        return EventResult("memory is off: nothing to change", chat, is_kept=False)
    pending: dict[str, Any]
    if isinstance(event, events.MessageRevoked):
        pending = {"revoked": "yes"}
    elif isinstance(event, events.MessageEdited):
        pending = {"text": event.text}
    else:
        pending = {"who": _who(event), "emoji": event.emoji}
    group = event.group_id
    pending["by"] = [chat_addresses.group_address(group)] if group else event.party.addresses()
    return EventResult("its message is not here (yet)", chat, change=pending)


def _change_turn(event: Change, turn: Turn) -> None:
    """Apply a change to a turn without memory; a turn that is over stores nothing of it."""
    same = Turn.objects.filter(pk=turn.pk)
    if isinstance(event, events.MessageEdited):
        same.filter(state__in=NOT_BEGUN).update(unstored_text=event.text)
    elif isinstance(event, events.MessageRevoked):
        turns_move(
            same.filter(state__in=OPEN_STATES),
            TurnState.CANCELLED,
            finished_at=event.timestamp,
            lease_token=None,
            unstored_text="",
        )
    turn.refresh_from_db()
    if turn.finished_at is not None:
        redact_derived.unstored_forget(turn)


def _react(message: Message, who: str, emoji: str, now: datetime) -> None:
    reactions = message.metadata.get("reactions", {})
    others = {key: value for key, value in reactions.items() if key not in address_forms(who)}
    message.metadata["reactions"] = {**others, who: emoji} if emoji else others
    message.metadata[REACTED_AT] = now.isoformat()
    message.save(update_fields=["metadata"])
    session_lifecycle.outcomes_outdate(session_ids=[message.session_id])


def _who(event: events.Reaction) -> str:
    addresses = event.party.addresses()
    return addresses[0] if addresses else "unknown"


# Find the stored message that a new one quotes, or that it is itself.


# A message is delivered again soon after it was.
TWINS_WITHIN = timedelta(days=1)


def quotes_our_message(event: events.InboundMessage, chat: Chat) -> bool:
    """Return whether the message quotes one of ours."""
    quoted = _quoted_by(event, chat)
    return quoted is not None and quoted.role == Role.ASSISTANT


def quote_metadata(event: events.InboundMessage, chat: Chat) -> dict[str, Any]:
    """Return what the metadata of a message says of the line that it answers.

    ``reply_to_id`` is the id of that message, as it is stored if it is. ``quoted`` is its text, as
    the provider sends it or as it is stored: an erasure of the one removes the other.
    """
    if not event.reply_to_id:
        return {}
    message = _quoted_by(event, chat)
    given = event.metadata.get(QUOTED, {})
    if message is None:
        given = {**given, "role": str(Role.ASSISTANT)} if event.replies_to_us else given
        return {"reply_to_id": event.reply_to_id, **({QUOTED: given} if given else {})}
    quote = quote_of(
        role=message.role,
        kind=message.kind,
        content=str(given.get("text") or message.content),
        sender=str(given.get("sender") or message.sender),
        name=str(message.metadata.get("sender_name") or ""),
    )
    about = {"reply_to_id": message.provider_message_id or event.reply_to_id}
    return {**about, QUOTED: {} if message.revoked_at else quote}


def _quoted_by(event: events.InboundMessage, chat: Chat) -> Message | None:
    """Return the quoted message; of an answer in several parts, whichever part is quoted."""
    if not event.reply_to_id:
        return None
    about = {"provider": event.provider, "number_id": event.number_id}
    messages, parts = Message.objects.filter(**about), OutboundPart.objects.filter(**about)
    message = row_of(messages, event.reply_to_id, chat_id=chat.pk)
    if message is not None:
        return message if message.chat_id == chat.pk else None
    parts = parts.select_related("turn__reply").filter(turn__chat=chat)
    part = row_of(parts, event.reply_to_id, chat_id=chat.pk, chat="turn__chat")
    return part.turn.reply if part else None


def twin_of(event: events.InboundMessage, chat: Chat) -> str:
    """Return the id of the same message, delivered before with the other identity in it, or ""."""
    about = {"provider": event.provider, "number_id": event.number_id}
    message = row_by_token(
        Message.objects.filter(**about), event.provider_message_id, chat_id=chat.pk
    )
    # Where memory is off there is the turn alone.
    turns = Turn.objects.filter(**about, session__isnull=True)
    recent = turns.filter(created_at__gte=event.timestamp - TWINS_WITHIN)
    twin = message or row_by_token(recent, event.provider_message_id, chat_id=chat.pk)
    return (twin.provider_message_id or "") if twin else ""
