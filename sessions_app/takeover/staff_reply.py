"""Store a reply that staff write to a chat.

It goes out in the same way as an answer: as a turn, after those of the chat that are being sent,
and never twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from memoryproject.foundation.integrations.whatsapp.base import WhatsAppProvider
from sessions_app.conversations.facade import has_window, last_heard
from sessions_app.inbound.facade import IntakeRules
from sessions_app.models import Chat
from sessions_app.models.turns import QUOTES
from sessions_app.takeover.attachment import Attachment, Posted, attached, parts_of
from sessions_app.takeover.own_number import OwnNumber, number_of
from sessions_app.takeover.quotes import quotable
from sessions_app.takeover.reply_errors import (
    EmptyReplyError,
    QuoteGoneError,
    TooLongError,
    WindowClosedError,
)
from sessions_app.takeover.reply_turn import (
    HandReply,
    Writer,
    Written,
    reply_turn_store,
    sent_before,
)
from sessions_app.turns.facade import chat_locked

MAX_LENGTH = 20_000


@dataclass(frozen=True)
class StaffReply:
    """A reply as it was written.

    The same ``key`` sends once, however often it comes. ``quote`` is the id of a message of the
    chat that the reply quotes, or empty. ``file`` goes with the text.
    """

    text: str
    key: UUID
    quote: str = ""
    file: Posted | None = None


def chat_reply(
    *,
    chat_id: UUID,
    reply: StaffReply,
    writer: Writer,
    providers: Mapping[str, WhatsAppProvider],
    otherwise: OwnNumber,
    storage: MediaStorage | None = None,
) -> HandReply:
    """Store the reply as an assistant message and hand it to the chat's provider.

    Its file is kept in ``storage``. The reply goes by ``otherwise`` where the chat came by the
    terminal, the API or an import. Where the assistant isn't paused, the reply pauses it for
    OWN_PAUSE. Raises ReplyRefusedError and Chat.DoesNotExist.

    The text goes out as it was written: WhatsApp's own marks, such as ``*bold*``, work.
    """
    text = _checked(reply.text, has_file=reply.file is not None)
    provider = providers[number_of(Chat.objects.get(pk=chat_id), otherwise).provider]
    attaching = attached(reply.file, provider=provider, storage=storage)
    with attaching as attachment, transaction.atomic():
        chat = chat_locked(chat_id)
        sha256 = attachment.file.sha256 if attachment else ""
        earlier = sent_before(key=reply.key, chat=chat, text=text, sha256=sha256)
        if earlier is not None:
            return earlier
        by = number_of(chat, otherwise)
        asked_at = _asked_at(chat, by, writer.rules, writer.now)
        quoted = _quoted(chat, by, reply.quote)
        parts = parts_of(text, attachment, providers[by.provider])
        return reply_turn_store(
            action="takeover.reply",
            chat=chat,
            by=by,
            key=reply.key,
            written=_written(text, parts, attachment, quoted=quoted, asked_at=asked_at),
            writer=writer,
        )


def _checked(text: str, *, has_file: bool) -> str:
    """Return the text, "" if it is blank. Raises EmptyReplyError and TooLongError."""
    if not has_file and not text.strip():
        raise EmptyReplyError
    if len(text) > MAX_LENGTH:
        raise TooLongError
    return text if text.strip() else ""


def _written(
    text: str,
    parts: Sequence[str],
    attachment: Attachment | None,
    *,
    quoted: str,
    asked_at: datetime,
) -> Written:
    return Written(
        text=text,
        parts=parts,
        asked_at=asked_at,
        kind=attachment.kind if attachment else "text",
        context={QUOTES: quoted} if quoted else {},
        metadata={"reply_to_id": quoted} if quoted else {},
        details={"file": attachment.kind} if attachment else {},
        attachment=attachment,
    )


def _asked_at(chat: Chat, by: OwnNumber, rules: IntakeRules, now: datetime) -> datetime:
    """Return when the person last wrote, or now where no window holds.

    Raises WindowClosedError.
    """
    heard = last_heard(chat)
    if heard is not None and now - heard <= rules.max_answer_age:
        return heard
    if has_window(by.provider):
        raise WindowClosedError
    return now


def _quoted(chat: Chat, by: OwnNumber, quote: str) -> str:
    """Return the provider's id of the message to quote, or "". Raises QuoteGoneError."""
    if not quote:
        return ""
    message = quotable(chat, by, quote)
    if message is None:
        raise QuoteGoneError
    return str(message.provider_message_id)
