"""Store a reply that staff write to a chat.

It goes out in the same way as an answer: as a turn, after those of the chat that are being sent,
and never twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.integrations.whatsapp.base import WhatsAppProvider
from memoryproject.foundation.integrations.whatsapp.outgoing_text import split_text
from sessions_app.conversations.facade import NewMessage, last_heard, session_open
from sessions_app.inbound.facade import IntakeRules
from sessions_app.models import Chat, Message, Turn
from sessions_app.models.messages import AUTHOR, Role
from sessions_app.models.turn_states import turn_create
from sessions_app.models.turns import QUOTES, TurnState
from sessions_app.takeover.own_number import OwnNumber, number_of
from sessions_app.takeover.quotes import quotable
from sessions_app.turns.facade import chat_locked, chat_pause, parts_store, pause_in_force

# A reply by staff pauses the assistant for this time.
OWN_PAUSE = timedelta(hours=1)

MAX_LENGTH = 20_000


class ReplyRefusedError(Exception):
    """The reply was refused; nothing was stored."""


class EmptyReplyError(ReplyRefusedError):
    """There are no words in the reply."""


class TooLongError(ReplyRefusedError):
    """The reply has more than MAX_LENGTH characters."""


class WindowClosedError(ReplyRefusedError):
    """The person wrote too long ago, or never."""


class QuoteGoneError(ReplyRefusedError):
    """The message to quote isn't there any more, or our number's provider doesn't know it."""


class KeyUsedError(ReplyRefusedError):
    """Another text was sent with this key."""


@dataclass(frozen=True)
class HandReply:
    """The turn of a reply.

    ``fresh`` is false where this key had been sent before. ``paused_until``: the end of the pause
    that this reply started.
    """

    turn: Turn
    fresh: bool
    paused_until: datetime | None = None


def chat_reply(
    *,
    chat_id: UUID,
    text: str,
    quote: str = "",
    key: UUID,
    author_id: int,
    actor: Actor,
    rules: IntakeRules,
    providers: Mapping[str, WhatsAppProvider],
    otherwise: OwnNumber,
    enqueue: Callable[[UUID], None],
    now: datetime,
) -> HandReply:
    """Store the text as an assistant message and hand it to the chat's provider.

    ``quote`` is the id of a message of the chat that the reply quotes, or empty. The reply goes by
    ``otherwise`` where the chat came by the terminal, the API or an import. The same ``key`` sends
    once, however often it comes. Where the assistant isn't paused, the reply pauses it for
    OWN_PAUSE. Raises ReplyRefusedError and Chat.DoesNotExist.

    The text goes out as it was written: WhatsApp's own marks, such as ``*bold*``, work.
    """
    if not text.strip():
        raise EmptyReplyError
    if len(text) > MAX_LENGTH:
        raise TooLongError
    with transaction.atomic():
        chat = chat_locked(chat_id)
        sent = Turn.objects.select_related("reply").filter(turn_id=key).first()
        if sent is not None:
            return _sent_before(sent, chat, text)
        last_message_at = last_heard(chat)
        if last_message_at is None or now - last_message_at > rules.max_answer_age:
            raise WindowClosedError
        by = number_of(chat, otherwise)
        quoted = _quoted(chat, by, quote)
        until = None
        if pause_in_force(chat.pk, now) is None:
            until = now + OWN_PAUSE
            chat_pause(chat_id=chat.pk, until=until, by=author_id, actor=actor, now=now)
        turn = _store(chat, by, text, quoted, key, author_id, last_message_at, rules, actor, now)
        parts_store(turn, split_text(text, providers[turn.provider].text_limit) or [text])
        audit_record(
            action="takeover.reply",
            actor=actor,
            object_type="turn",
            object_id=turn.turn_id,
            chat_id=chat.pk,
        )
        # Where the queue is down the sweep finds it.
        transaction.on_commit(lambda: enqueue(chat_id), robust=True)
    return HandReply(turn, fresh=True, paused_until=until)


def _quoted(chat: Chat, by: OwnNumber, quote: str) -> str:
    """Return the provider's id of the message to quote, or "". Raises QuoteGoneError."""
    if not quote:
        return ""
    message = quotable(chat, by, quote)
    if message is None:
        raise QuoteGoneError
    return str(message.provider_message_id)


def _sent_before(sent: Turn, chat: Chat, text: str) -> HandReply:
    """Return the earlier turn of a form that was posted twice."""
    sent_text = sent.reply.content if sent.reply else sent.unstored_reply
    # A text that was erased by now can't be compared.
    if not sent.by_hand or sent.chat_id != chat.pk or (sent_text and sent_text != text):
        raise KeyUsedError
    return HandReply(sent, fresh=False)


def _store(
    chat: Chat,
    by: OwnNumber,
    text: str,
    quoted: str,
    key: UUID,
    author_id: int,
    last_message_at: datetime,
    rules: IntakeRules,
    actor: Actor,
    now: datetime,
) -> Turn:
    role = rules.chat_memory.role_in(chat)
    stored: dict[str, Any]
    if rules.remember(chat):
        reply = _message(chat, by, text, quoted, author_id, role, rules, actor, now)
        stored = {"reply": reply, "session": reply.session}
    else:
        # As with the assistant's answers: kept until it is sent.
        stored = {"unstored_reply": text}
    return turn_create(
        turn_id=key,
        chat=chat,
        by_hand=True,
        state=TurnState.REPLIED,
        provider=by.provider,
        number_id=by.number_id,
        user_role=role,
        asked_at=last_message_at,
        context={"kind": "text", AUTHOR: author_id, **({QUOTES: quoted} if quoted else {})},
        **stored,
    )


def _message(
    chat: Chat,
    by: OwnNumber,
    text: str,
    quoted: str,
    author_id: int,
    role: str,
    rules: IntakeRules,
    actor: Actor,
    now: datetime,
) -> Message:
    session = session_open(chat=chat, now=now, timeout=rules.session_timeout, actor=actor)
    new = NewMessage(
        role=Role.ASSISTANT,
        content=text,
        timestamp=now,
        sender="assistant",
        recipient=chat.whatsapp_chat,
        provider=by.provider,
        number_id=by.number_id,
        was_received=False,
        metadata={
            "by_hand": True,
            AUTHOR: author_id,
            **({"reply_to_id": quoted} if quoted else {}),
        },
    )
    (stored,) = rules.chat_memory.append(session=session, new=[new], role=role, now=now)
    return stored
