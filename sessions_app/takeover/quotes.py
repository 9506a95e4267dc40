"""Decide which message a reply may quote."""

from __future__ import annotations

from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.models import Chat, Message
from sessions_app.takeover.own_number import OwnNumber


def quotable(chat: Chat, by: OwnNumber, message_id: str) -> Message | None:
    """Return the message, or None where a reply by this number can't quote it.

    A provider knows a message by its own id, and only at the number at which it came or went.
    """
    key = uuid_or_none(message_id)
    if key is None:
        return None
    return (
        Message.objects.filter(
            pk=key,
            chat=chat,
            provider=by.provider,
            number_id=by.number_id,
            provider_message_id__isnull=False,
            revoked_at__isnull=True,
        )
        .exclude(provider_message_id="")
        .first()
    )
