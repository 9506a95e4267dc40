"""Define and validate the messages that callers exchange with a conversation."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

from sessions_app.conversations.message_store import DataValidationError, NewMessage
from sessions_app.models import Message
from sessions_app.models.messages import Role

logger = logging.getLogger(__name__)

MAX_ADDRESS_LENGTH = 255

MAX_PATH_LENGTH = 1024


@dataclass(frozen=True)
class ConversationMessage:
    """A message of a session (seed 003's ChatMessage).

    ``content`` is stored unchanged. ``message_id`` and the fields after it are set when the
    message is stored.
    """

    role: str
    content: str
    timestamp: datetime
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sender: str = ""
    recipient: str = ""
    image_path: str | None = None
    message_id: UUID | None = None
    order_num: int | None = None
    tokens: int | None = None
    received_at: datetime | None = None
    was_received: bool = True


def as_conversation_message(message: Message) -> ConversationMessage:
    """Return a stored message in the form of the history service."""
    return ConversationMessage(
        role=message.role,
        content=message.content,
        timestamp=message.timestamp,
        metadata=message.metadata,
        sender=message.sender,
        recipient=message.recipient,
        image_path=message.image_path,
        message_id=message.message_id,
        order_num=message.order_num,
        tokens=message.tokens,
        received_at=message.received_at,
        was_received=message.was_received,
    )


def checked_message(
    message: ConversationMessage, *, place: int, image_root: Path | None
) -> NewMessage:
    """Return the message ready to be stored.

    ``place`` counts from 0 in the caller's list. Raises DataValidationError that names the
    place and the field. A timestamp without a time zone counts as UTC (ERR-INTEGRATION-004). A
    message with a missing picture is stored all the same (EDGE-008). Both log a WARNING.
    """
    where = f"messages[{place}]"
    if message.role not in Role.values:
        raise DataValidationError(
            f"{where}.role: unknown role {message.role!r}; it is one of {', '.join(Role.values)}."
        )
    _check_text(f"{where}.content", message.content)
    for name in ("sender", "recipient"):
        _check_text(f"{where}.{name}", getattr(message, name), longest=MAX_ADDRESS_LENGTH)
    if message.image_path is not None:
        _check_text(f"{where}.image_path", message.image_path, longest=MAX_PATH_LENGTH)
        _warn_of_missing_image(message.image_path, image_root)
    message = replace(message, timestamp=_in_utc(f"{where}.timestamp", message.timestamp))
    return NewMessage(
        role=message.role,
        content=message.content,
        timestamp=message.timestamp,
        sender=message.sender,
        recipient=message.recipient,
        image_path=message.image_path,
        metadata=_checked_metadata(f"{where}.metadata", message.metadata),
    )


def _check_text(where: str, text: object, *, longest: int | None = None) -> None:
    if not isinstance(text, str):
        raise DataValidationError(f"{where}: must be a text, not {type(text).__name__}.")
    if "\x00" in text:
        raise DataValidationError(f"{where}: holds a NUL character, which can't be stored.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise DataValidationError(f"{where}: holds half of a character (a lone surrogate).")
    if longest is not None and len(text) > longest:
        raise DataValidationError(f"{where}: has {len(text)} characters, at most {longest} fit.")


def _in_utc(where: str, timestamp: object) -> datetime:
    if not isinstance(timestamp, datetime):
        raise DataValidationError(
            f"{where}: must be a date and time, not {type(timestamp).__name__}."
        )
    if timestamp.tzinfo is None:
        logger.warning("%s has no time zone: it counts as UTC.", where)
        return timestamp.replace(tzinfo=timezone.utc)
    try:
        return timestamp.astimezone(timezone.utc)
    except OverflowError:
        raise DataValidationError(f"{where}: is out of range.") from None


def _checked_metadata(where: str, metadata: object) -> dict[str, Any]:
    """Return the metadata; raise DataValidationError for what JSON can't hold.

    The same for values that the database can't hold (ERR-SESSION-003).
    """
    if not isinstance(metadata, Mapping):
        raise DataValidationError(f"{where}: must be an object, not {type(metadata).__name__}.")
    found = dict(metadata)
    try:
        text = json.dumps(found, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        logger.error("%s can't be written as JSON (%s).", where, error)
        raise DataValidationError(f"{where}: can't be written as JSON: {error}.") from None
    if "\\u0000" in text:
        raise DataValidationError(f"{where}: holds a NUL character, which can't be stored.")
    _check_text(where, text)
    if not all(isinstance(key, str) for key in found):
        raise DataValidationError(f"{where}: its keys must be texts.")
    return found


def _warn_of_missing_image(image_path: str, image_root: Path | None) -> None:
    if image_root is not None and not (image_root / image_path).is_file():
        logger.warning("There is no picture at %s; its path is stored.", image_path)


MAX_MESSAGES = 1_000
