"""Ids of old files as UUIDs: a UUID stays unchanged, any other id maps to a fixed one."""

from __future__ import annotations

import re
import uuid
from uuid import UUID

NAMESPACE = UUID("6f1d3a52-5b3e-5a0c-9d63-2a8f0e6b7c14")
UUID_FORM = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}", re.IGNORECASE
)
# xxx@c.us for a person, xxx@g.us for a group (ERR-SESSION-007), and people without a number.
CHAT_FORM = re.compile(r"[^\s@]+@(c\.us|g\.us|bsuid)", re.IGNORECASE)


def is_uuid(text: str) -> bool:
    return UUID_FORM.fullmatch(text) is not None


def is_whatsapp_chat(text: str) -> bool:
    return CHAT_FORM.fullmatch(text) is not None


def session_uuid(original: str) -> UUID:
    if is_uuid(original):
        return UUID(original)
    return uuid.uuid5(NAMESPACE, f"session:{original}")


def message_uuid(original: str, session_id: UUID) -> UUID:
    """Return the message's UUID.

    Ids such as "1" are unique in their session only, so the session's id is part of the input.
    """
    if is_uuid(original):
        return UUID(original)
    return uuid.uuid5(NAMESPACE, f"message:{session_id}:{original}")
