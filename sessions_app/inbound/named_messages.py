"""Find the stored message that a new one quotes, or that it is itself."""

from __future__ import annotations

from datetime import timedelta

from memoryproject.foundation.integrations.whatsapp.events import InboundMessage
from sessions_app.conversations.facade import row_by_token, row_of
from sessions_app.models import Chat, Message, Turn
from sessions_app.models.messages import Role

# A message is delivered again soon after it was.
TWINS_WITHIN = timedelta(days=1)


def quotes_our_message(event: InboundMessage, chat: Chat) -> bool:
    """Return whether the message quotes one of ours."""
    quoted = _quoted_by(event, chat)
    return quoted is not None and quoted.role == Role.ASSISTANT


def quoted_id(event: InboundMessage, chat: Chat) -> str | None:
    """Return the id of the quoted message, as it is stored if it is."""
    quoted = _quoted_by(event, chat)
    return (quoted and quoted.provider_message_id) or event.reply_to_id


def _quoted_by(event: InboundMessage, chat: Chat) -> Message | None:
    if not event.reply_to_id:
        return None
    messages = Message.objects.filter(provider=event.provider, number_id=event.number_id)
    return row_of(messages, event.reply_to_id, chat_id=chat.pk)


def twin_of(event: InboundMessage, chat: Chat) -> str:
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
