"""Parse the two generations of session and message documents (seed 002).

The older names are ``chat_id`` and ``phone_number``; the oldest sessions contain their
messages. Nothing here raises anything but LegacyError.
"""

import math
import re
import uuid
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
from memoryproject.foundation.tables import read_table


class LegacyError(Exception):
    """A file or a record can't be used.

    The text names the field and the reason, never the value.
    """


class LegacyMissing(LegacyError):
    """The file doesn't exist."""


# Ids of old files as UUIDs: a UUID stays unchanged, any other id maps to a fixed one.

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


# Parse the values of old JSON documents, and describe the unusable ones.

MAX_DEPTH = 50
# The largest integer that every JSON reader keeps exactly.
MAX_COUNT = 2**53
EARLIEST = datetime(1970, 1, 1, tzinfo=timezone.utc)

ZONE = re.compile(r":[^:]*(Z|[+-]\d\d(:?\d\d)?)$", re.IGNORECASE)
SURROGATE = re.compile("[\ud800-\udfff]")

WORDS = read_table(__file__, "words.yaml")


def storable(value: Any, depth: int = 0) -> Any:
    """Return the value. Reject values that PostgreSQL can't hold, at any depth. Raises ValueError.

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
    return value


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
Unknown = Annotated[dict[str, Any], PlainValidator(storable)]


TIMES = {"created_at", "last_active", "timestamp", "received_at"}


class Document(BaseModel):
    """A document; null counts as missing.

    ``unknown`` holds the fields of other names; ``naive``: a time had no zone.
    """

    model_config = ConfigDict(strict=True, frozen=True)
    # By the new name: an older name counts only if the new one is missing.
    older: ClassVar[dict[str, str]] = {}

    unknown: Unknown = {}
    naive: bool = False

    @classmethod
    def names(cls) -> set[str]:
        """Return the names of the fields in a file."""
        fields = {field.alias or name for name, field in cls.model_fields.items()}
        return fields - {"unknown", "naive"}

    @classmethod
    def read(cls, given: Mapping[str, Any], *, latest: datetime | None = None) -> Self:
        """Read the document. Raises LegacyError.

        ``latest``: the last permitted time.
        """
        names = cls.names()
        known = {name: given[name] for name in names & given.keys() if given[name] is not None}
        unknown = {name: value for name, value in given.items() if name not in names}
        times = [known[name] for name in TIMES & known.keys()]
        naive = any(isinstance(time, str) and not ZONE.search(time) for time in times)
        for name, older in cls.older.items():
            if known.get(name):
                known.pop(older, None)
        try:
            return cls.model_validate({**known, "unknown": unknown, "naive": naive}, context=latest)
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
        reason = WORDS["reasons"][first["type"]].format(**first.get("ctx", {}))
        name = str(first["loc"][0])
        raise LegacyError(f"{'a field of unknown name' if name == 'unknown' else name}: {reason}")


ROLES = ("user", "assistant", "system", "tool", "summary")
MAX_ORDER = 1_000_000_000


class LegacySession(Document):
    """A session's file.

    ``original_id`` is its id as written there, ``messages`` those that it contains, not parsed
    yet.
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
    """One message."""

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

    def message_id(self, session_id: UUID) -> UUID:
        return message_uuid(self.original_id, session_id)


def parse_session(document: object, *, name: str, latest: datetime) -> LegacySession:
    """Parse a session's document. Raises LegacyError.

    ``name``: the name of its file, without extension; ``latest``: the last permitted time.
    """
    found = LegacySession.read(_object(document), latest=latest)
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
    given = dict(_object(document))
    received, written = given.get("received_at"), given.get("timestamp")
    usual = {"timestamp": received, "received_at": written, "order_num": position}
    given |= {name: value for name, value in usual.items() if given.get(name) is None}
    if position is not None and given.get("message_id") in (None, ""):
        given["message_id"] = f"#{position}"
    return LegacyMessage.read(given, latest=latest)


def message_session(document: object) -> str:
    """Return the session that a message names, "" for none. Raises LegacyError.

    Works even if the rest of the message is unusable.
    """
    given = _object(document)
    return _Reference.read({name: given.get(name) for name in _Reference.names()}).session_ref


def _object(document: object) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise LegacyError("not a JSON object")
    return document


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
