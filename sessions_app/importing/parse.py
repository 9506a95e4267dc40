"""Reads the two generations of session and message documents (seed 002).

The older names are ``chat_id`` and ``phone_number``; the oldest sessions hold their messages
themselves. Nothing here raises anything but LegacyError.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sessions_app.importing.errors import LegacyError
from sessions_app.importing.ids import is_uuid, message_uuid, session_uuid
from sessions_app.importing.values import (
    Document,
    optional_count,
    optional_flag,
    optional_moment,
    optional_text,
    required_moment,
    required_text,
    storable,
)

ROLES = ("user", "assistant", "system", "tool", "summary")
MAX_NAME = 255
MAX_PATH = 1024
MAX_CONTENT = 10 * 1024 * 1024
MAX_ORDER = 1_000_000_000
BARE_PHONE = re.compile(r"\+?(\d{7,15})", re.ASCII)

SESSION_FIELDS = {
    *("session_id", "chat_id", "whatsapp_chat", "phone_number", "client_name", "client_phone"),
    *("message_ids", "messages", "message_counter", "created_at", "last_active", "total_tokens"),
}
MESSAGE_FIELDS = {
    *("message_id", "session_id", "chat_id", "order_num", "role", "content", "sender"),
    *("recipient", "timestamp", "received_at", "was_received", "tokens", "image_path"),
}


@dataclass(frozen=True)
class LegacySession:
    """A session's file. ``original_id`` is its id as written there; ``embedded`` the messages
    that it holds itself, not read yet; ``unknown`` the names of the fields that we don't know;
    ``naive``: a time had no zone."""

    original_id: str
    whatsapp_chat: str
    client_name: str
    created_at: datetime
    last_active: datetime
    message_ids: tuple[str, ...]
    embedded: tuple[Any, ...]
    total_tokens: int | None
    unknown: tuple[str, ...]
    naive: bool

    @property
    def session_id(self) -> UUID:
        return session_uuid(self.original_id)


@dataclass(frozen=True)
class LegacyMessage:
    """One message. ``session_ref`` is what it calls its session, perhaps nothing; ``unknown``
    holds the fields that we don't know; ``naive``: a time had no zone."""

    original_id: str
    session_ref: str
    order_num: int
    role: str
    content: str
    sender: str
    recipient: str
    timestamp: datetime
    received_at: datetime
    was_received: bool
    tokens: int | None
    image_path: str | None
    unknown: dict[str, Any]
    naive: bool

    def message_id(self, session_id: UUID) -> UUID:
        return message_uuid(self.original_id, session_id)


def parse_session(document: object, *, name: str, latest: datetime) -> LegacySession:
    """A session's document. ``name``: its file's, without ending; ``latest``: the last moment
    that a time may name. Raises LegacyError."""
    found = _object(document)
    unknown = tuple(sorted(found.keys() - SESSION_FIELDS))
    for field in unknown:
        storable({field: found[field]}, "a field of unknown name")
    original_id, whatsapp_chat = _who(found, name)
    created_at, naive = required_moment(found, "created_at", latest)
    last_active, naive_too = required_moment(found, "last_active", latest)
    optional_count(found, "message_counter")
    optional_text(found, "client_phone", MAX_NAME)
    return LegacySession(
        original_id=original_id,
        whatsapp_chat=whatsapp_chat,
        client_name=optional_text(found, "client_name", MAX_NAME) or "",
        created_at=created_at,
        last_active=last_active,
        message_ids=_message_ids(found),
        embedded=tuple(_list(found, "messages")),
        total_tokens=optional_count(found, "total_tokens"),
        unknown=unknown,
        naive=naive or naive_too,
    )


def parse_message(
    document: object, *, latest: datetime, position: int | None = None
) -> LegacyMessage:
    """A message's document. ``position``, from 1: its place where its session holds it itself;
    it then may lack an id and an order_num. Raises LegacyError."""
    found = _object(document)
    unknown = {field: found[field] for field in found if field not in MESSAGE_FIELDS}
    storable(unknown, "a field of unknown name")
    received_at, naive = optional_moment(found, "received_at", latest)
    timestamp, naive_too = optional_moment(found, "timestamp", latest)
    written = timestamp or received_at
    if written is None:
        raise LegacyError("timestamp: missing")
    return LegacyMessage(
        original_id=_message_id(found, position),
        session_ref=message_session(found),
        order_num=_order_num(found, position),
        role=_role(found),
        content=required_text(found, "content", MAX_CONTENT),
        sender=optional_text(found, "sender", MAX_NAME) or "",
        recipient=optional_text(found, "recipient", MAX_NAME) or "",
        timestamp=written,
        received_at=received_at or written,
        was_received=optional_flag(found, "was_received", default=True),
        tokens=optional_count(found, "tokens"),
        image_path=optional_text(found, "image_path", MAX_PATH),
        unknown=unknown,
        naive=naive or naive_too,
    )


def message_session(document: object) -> str:
    """What a message calls its session, "" for nothing: also where the rest of the message
    can't be used. Raises LegacyError."""
    found = _object(document)
    return (
        optional_text(found, "session_id", MAX_NAME) or optional_text(found, "chat_id", MAX_NAME)
    ) or ""


def _object(document: object) -> Document:
    if not isinstance(document, dict):
        raise LegacyError("not a JSON object")
    return document


def _list(found: Document, field: str) -> list[Any]:
    value = found.get(field)
    if value is None:
        return []
    if not isinstance(value, list):
        raise LegacyError(f"{field}: not a list")
    return value


def _who(found: Document, name: str) -> tuple[str, str]:
    """The session's id and its WhatsApp chat. ``chat_id`` was either: its form tells which."""
    session_id = optional_text(found, "session_id", MAX_NAME)
    chat_id = optional_text(found, "chat_id", MAX_NAME)
    chat = optional_text(found, "whatsapp_chat", MAX_NAME) or _phone(found)
    if not chat and chat_id and not is_uuid(chat_id):
        chat = chat_id
    if not session_id and chat_id:
        session_id = name if "@" in chat_id and is_uuid(name) else chat_id
    if not session_id:
        raise LegacyError("session_id: missing")
    if not chat or not chat.strip():
        raise LegacyError("whatsapp_chat: missing")
    if not chat.isprintable():
        raise LegacyError("whatsapp_chat: holds control characters")
    return session_id, chat


def _phone(found: Document) -> str | None:
    """The older name of whatsapp_chat, also as a number alone."""
    phone = optional_text(found, "phone_number", MAX_NAME)
    bare = BARE_PHONE.fullmatch(phone or "")
    return f"{bare[1]}@c.us" if bare else phone


def _message_ids(found: Document) -> tuple[str, ...]:
    ids = _list(found, "message_ids")
    for one in ids:
        if not isinstance(one, str):
            raise LegacyError("message_ids: holds something that is not a text")
        storable(one, "message_ids")
    return tuple(dict.fromkeys(ids))


def _message_id(found: Document, position: int | None) -> str:
    original = optional_text(found, "message_id", MAX_NAME)
    if original:
        return original
    if position is None:
        raise LegacyError("message_id: missing")
    return f"#{position}"


def _order_num(found: Document, position: int | None) -> int:
    number = optional_count(found, "order_num", MAX_ORDER)
    if number is None:
        number = position
    if number is None:
        raise LegacyError("order_num: missing")
    if number < 1:
        raise LegacyError("order_num: less than 1")
    return number


def _role(found: Document) -> str:
    role = required_text(found, "role", MAX_NAME)
    if role not in ROLES:
        raise LegacyError(f"role: not one of {', '.join(ROLES)}")
    return role
