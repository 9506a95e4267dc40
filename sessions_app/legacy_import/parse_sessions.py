"""Parse the two generations of session and message documents (seed 002).

The older names are ``chat_id`` and ``phone_number``; the oldest sessions contain their
messages. Nothing here raises anything but LegacyError.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Annotated, Any, ClassVar
from uuid import UUID

from django.utils.dateparse import parse_datetime
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
)
from typing_extensions import Self

from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    WhatsAppChatError,
    whatsapp_chat_normalise,
)
from sessions_app.legacy_import.session_folder import (
    LegacyError,
    is_uuid,
    message_uuid,
    session_uuid,
)

# Parse the values of old JSON documents, and describe the unusable ones.

MAX_DEPTH = 50
# The largest integer that every JSON reader keeps exactly.
MAX_COUNT = 2**53
EARLIEST = datetime(1970, 1, 1, tzinfo=timezone.utc)

ZONE = re.compile(r":[^:]*(Z|[+-]\d\d(:?\d\d)?)$", re.IGNORECASE)
SURROGATE = re.compile("[\ud800-\udfff]")

REASONS = {
    "missing": "missing",
    "value_error": "{error}",
    "string_type": "not a text",
    "string_too_short": "missing",
    "string_unicode": "holds half a character (a lone surrogate)",
    "string_too_long": "longer than {max_length} characters",
    "int_type": "not a whole number",
    "greater_than_equal": "less than {ge}",
    "less_than_equal": "not between 0 and {le}",
    "bool_type": "neither true nor false",
    "list_type": "not a list",
}


def storable(value: object, depth: int = 0) -> None:
    """Reject values that PostgreSQL can't hold, at any depth. Raises ValueError.

    These are NUL, lone surrogates, NaN and infinite numbers, and unlimited nesting.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    if isinstance(value, str):
        _storable_text(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a finite number")
    elif isinstance(value, list):
        for part in value:
            storable(part, depth + 1)
    elif isinstance(value, dict):
        for key, part in value.items():
            _storable_text(key)
            storable(part, depth + 1)


def _storable_text(text: str) -> str:
    if "\x00" in text:
        raise ValueError("holds a NUL character")
    if SURROGATE.search(text):
        raise ValueError("holds half a character (a lone surrogate)")
    return text


def _moment(text: object, info: ValidationInfo[datetime]) -> datetime:
    """Return a time in UTC; a time without a zone counts as UTC.

    No time is after the context's limit: it would keep a session open for ever.
    """
    if not isinstance(text, str):
        raise ValueError("not a text")
    try:
        # A day alone is no time.
        moment = parse_datetime(text.upper()) if ":" in text else None
        if moment is None:
            raise ValueError("not a time in ISO form, such as 2026-01-18T09:30:00Z")
        zone = moment.tzinfo or timezone.utc
        moment = moment.replace(tzinfo=zone).astimezone(timezone.utc)
    except OverflowError as error:
        raise ValueError("no such time") from error
    if not EARLIEST <= moment <= info.context:
        raise ValueError("before 1970 or in the future")
    return moment


STORABLE = AfterValidator(_storable_text)
Text = Annotated[str, STORABLE]
Name = Annotated[str, Field(max_length=255), STORABLE]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Moment = Annotated[datetime, PlainValidator(_moment)]


class Document(BaseModel):
    """The known fields of a document; null counts as missing."""

    model_config = ConfigDict(strict=True, frozen=True)
    # By the new name: an older name counts only if the new one is missing.
    older: ClassVar[dict[str, str]] = {}

    @classmethod
    def read(cls, given: Mapping[str, Any], *, latest: datetime | None = None) -> Self:
        """Read the document. Raises LegacyError.

        ``latest``: the last permitted time.
        """
        there = {name: value for name, value in given.items() if value is not None}
        for name, older in cls.older.items():
            if there.get(name):
                there.pop(older, None)
        try:
            return cls.model_validate(there, context=latest)
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
        reason = REASONS[first["type"]].format(**first.get("ctx", {}))
        raise LegacyError(f"{first['loc'][0]}: {reason}")


ROLES = ("user", "assistant", "system", "tool", "summary")
MAX_ORDER = 1_000_000_000


class LegacySession(Document):
    """A session's file.

    ``original_id`` is its id as written there, ``messages`` those that it contains, not parsed
    yet; ``unknown`` holds the unknown fields; ``naive``: a time had no zone.
    """

    older = {"whatsapp_chat": "phone_number"}

    original_id: Name = Field("", alias="session_id")
    chat_id: Name = ""
    whatsapp_chat: Name = ""
    phone_number: Name = ""
    client_name: Name = ""
    client_phone: Name = ""
    created_at: Moment
    last_active: Moment
    message_ids: Annotated[list[Text], FailFast()] = []
    messages: list[Any] = []
    message_counter: Count = 0
    total_tokens: Count | None = None
    unknown: dict[str, Any] = {}
    naive: bool = False

    @property
    def session_id(self) -> UUID:
        return session_uuid(self.original_id)


def _known_role(role: str) -> str:
    if role not in ROLES:
        raise ValueError(f"not one of {', '.join(ROLES)}")
    return role


class _Reference(Document):
    older = {"session_id": "chat_id"}

    session_id: Name = ""
    chat_id: Name = ""

    @property
    def session_ref(self) -> str:
        """Return the session that a message names, perhaps empty."""
        return self.session_id or self.chat_id


class LegacyMessage(_Reference):
    """One message.

    ``unknown`` holds the unknown fields; ``naive``: a time had no zone.
    """

    original_id: Name = Field(alias="message_id", min_length=1)
    order_num: int = Field(ge=1, le=MAX_ORDER)
    role: Annotated[str, AfterValidator(_known_role)]
    content: Annotated[str, Field(max_length=10 * 1024 * 1024), STORABLE]
    sender: Name = ""
    recipient: Name = ""
    timestamp: Moment
    received_at: Moment
    was_received: bool = True
    tokens: Count | None = None
    image_path: Annotated[str, Field(max_length=1024), STORABLE] | None = None
    unknown: dict[str, Any] = {}
    naive: bool = False

    def message_id(self, session_id: UUID) -> UUID:
        return message_uuid(self.original_id, session_id)


TIMES = {"created_at", "last_active", "timestamp", "received_at"}
_OURS = ("original_id", "unknown", "naive")
SESSION_FIELDS = {"session_id", *LegacySession.model_fields}.difference(_OURS)
MESSAGE_FIELDS = {"message_id", *LegacyMessage.model_fields}.difference(_OURS)


def parse_session(document: object, *, name: str, latest: datetime) -> LegacySession:
    """Parse a session's document. Raises LegacyError.

    ``name``: the name of its file, without extension; ``latest``: the last permitted time.
    """
    found = LegacySession.read(_divided(document, SESSION_FIELDS), latest=latest)
    original_id, whatsapp_chat = _who(found, name)
    return found.model_copy(
        update={
            "original_id": original_id,
            "whatsapp_chat": whatsapp_chat,
            # The two have their meaning now, whichever names the file uses.
            "chat_id": "",
            "phone_number": "",
            "message_ids": list(dict.fromkeys(found.message_ids)),
        }
    )


def parse_message(
    document: object, *, latest: datetime, position: int | None = None
) -> LegacyMessage:
    """Parse a message's document. Raises LegacyError.

    ``position``, from 1: its place if its session's file contains it; it may then lack an id
    and an order_num.
    """
    known = _divided(document, MESSAGE_FIELDS)
    known.setdefault("timestamp", known.get("received_at"))
    known.setdefault("received_at", known["timestamp"])
    known.setdefault("order_num", position)
    if position is not None and known.get("message_id", "") == "":
        known["message_id"] = f"#{position}"
    return LegacyMessage.read(known, latest=latest)


def message_session(document: object) -> str:
    """Return the session that a message names, "" for none. Raises LegacyError.

    Works even if the rest of the message is unusable.
    """
    return _Reference.read(_object(document)).session_ref


def _object(document: object) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise LegacyError("not a JSON object")
    return document


def _divided(document: object, fields: set[str]) -> dict[str, Any]:
    """Return the values of these fields, all ``unknown`` ones, and whether a time is ``naive``.

    Raises LegacyError.
    """
    given = _object(document)
    unknown = {name: value for name, value in given.items() if name not in fields}
    try:
        storable(unknown)
    except ValueError as error:
        raise LegacyError(f"a field of unknown name: {error}") from error
    times = map(given.get, TIMES & fields)
    naive = any(isinstance(time, str) and not ZONE.search(time) for time in times)
    known = {name: given[name] for name in fields & given.keys() if given[name] is not None}
    return {**known, "unknown": unknown, "naive": naive}


def _who(found: LegacySession, name: str) -> tuple[str, str]:
    """Return the session's id and its WhatsApp chat.

    ``chat_id`` could be either: its form decides.
    """
    session_id, chat_id = found.original_id, found.chat_id
    chat = found.whatsapp_chat or found.phone_number
    if not chat and not is_uuid(chat_id):
        chat = chat_id
    if not session_id:
        session_id = name if "@" in chat_id and is_uuid(name) else chat_id
    if not session_id:
        raise LegacyError("session_id: missing")
    if not chat.strip():
        raise LegacyError("whatsapp_chat: missing")
    try:
        return session_id, whatsapp_chat_normalise(chat)
    except WhatsAppChatError as error:
        raise LegacyError(f"whatsapp_chat: {error}") from error
