"""Convert memories with everything that belongs to them to JSON objects and back."""

import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import islice
from typing import Any
from uuid import UUID

from django.db.models import Model, QuerySet
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from memories_app.facts.validation import FACT_TIMES, NewMemory, problems_of, storable_metadata
from memories_app.models import Memory, MemoryStatus, RevisionReason, Visibility
from memoryproject.foundation.text.uuids import is_storable, iso_utc

logger = logging.getLogger(__name__)

AT_ONCE = 500
_MAX_REPORTED = 2**31 - 1
_MAX_DIMENSIONS = 16_000

REVISION_FIELDS = (
    *("number", "content", "value", "visibility", "type", "category", "tags"),
    *("changed_at", "changed_by_kind", "changed_by_name", "reason"),
)
SOURCE_FIELDS = ("source", "source_message_id", "told_at")

# Maps the ids of chats to their names.
ChatNames = Callable[[Collection[UUID]], Mapping[UUID, str]]


class RecordError(ValueError):
    """A record is invalid. The text explains the problem to the author of the file."""


@dataclass
class Record:
    """An imported memory: the fields of ``NewMemory``, and its history."""

    new: NewMemory
    memory_id: UUID | None
    status: str
    told_count: int
    last_told_at: datetime
    created_at: datetime
    updated_at: datetime
    superseded_by: UUID | None
    superseded_at: datetime | None
    revisions: list[dict[str, Any]] = field(default_factory=list)
    tellings: list[dict[str, Any]] = field(default_factory=list)
    embeddings: dict[str, list[float]] = field(default_factory=dict)


def records_of(
    memories: QuerySet[Memory], *, chat_names: ChatNames, embeddings: bool
) -> Iterator[dict[str, Any]]:
    """Yield every memory as a record, oldest first; only a few are in memory at once."""
    related = ["revisions", "tellings", *(["embeddings"] if embeddings else [])]
    found = memories.order_by("created_at", "memory_id").defer("terms", "likeness")
    walk = found.prefetch_related(*related).iterator(chunk_size=AT_ONCE)
    while chunk := list(islice(walk, AT_ONCE)):
        names = chat_names({memory.chat_id for memory in chunk if memory.chat_id})
        for memory in chunk:
            name = names.get(memory.chat_id) if memory.chat_id else None
            yield _as_record(memory, name, embeddings=embeddings)


def _as_record(memory: Memory, whatsapp_chat: str | None, *, embeddings: bool) -> dict[str, Any]:
    record: dict[str, Any] = {
        **_plain(memory, "memory_id", "content", "type", "category", "tags", "visibility"),
        "whatsapp_chat": whatsapp_chat,
        **_plain(memory, "source", "source_message_id", "metadata", "confidence", "status"),
        **_plain(memory, "pinned", "expires_at", "said_at", "valid_from", "valid_until"),
        **_plain(memory, "namespace", "key", "value"),
        "dedupe": not memory.stands_alone,
        **_plain(memory, "told_count", "last_told_at"),
        "superseded_by": _value(memory.superseded_by_id),
        **_plain(memory, "superseded_at", "created_at", "updated_at"),
        "revisions": [_plain(each, *REVISION_FIELDS) for each in memory.revisions.all()],
        "tellings": [_plain(each, *SOURCE_FIELDS) for each in memory.tellings.all()],
    }
    if embeddings:
        record["embeddings"] = [
            {"model": each.model, "vector": [float(part) for part in each.vector]}
            for each in sorted(memory.embeddings.all(), key=lambda each: each.model)
        ]
    return record


def _plain(row: Model, *names: str) -> dict[str, Any]:
    return {name: _value(getattr(row, name)) for name in names}


def _value(value: Any) -> Any:
    """Return a value as JSON holds it."""
    if isinstance(value, UUID):
        return str(value)
    return iso_utc(value) if isinstance(value, datetime) else value


def read_record(record: Any, *, chat_id: UUID | None, now: datetime) -> Record:
    """Validate a record; ``chat_id`` is the chat that it names.

    Unknown fields are ignored. A missing visibility gets the default of POST memories/. Raises
    RecordError.
    """
    if not isinstance(record, dict):
        raise RecordError(_("is not a JSON object"))
    given = _Fields(record)
    times: dict[str, Any] = {name: given.time(name) for name in ("expires_at", *FACT_TIMES)}
    new = NewMemory(
        content=given.text("content", required=True),
        namespace=given.text("namespace") or None,
        key=given.text("key") or None,
        value=given.object("value"),
        dedupe=given.truth("dedupe", default=True),
        visibility=given.text("visibility") or _visibility_without_any(chat_id),
        chat_id=chat_id,
        type=given.text("type") or "fact",
        category=given.text("category"),
        tags=tuple(given.texts("tags")),
        source=given.text("source"),
        source_message_id=given.id("source_message_id"),
        metadata=record.get("metadata") or {},
        confidence=given.number("confidence"),
        pinned=given.truth("pinned"),
        **times,
    )
    problems = problems_of(new)
    if problems:
        raise RecordError("; ".join(f"{each.field}: {each.detail}" for each in problems))
    created_at = given.time("created_at") or now
    return Record(
        new=new,
        memory_id=given.id("memory_id"),
        status=given.choice("status", MemoryStatus.values, default=str(MemoryStatus.ACTIVE)),
        told_count=given.count("told_count", default=1),
        last_told_at=given.time("last_told_at") or created_at,
        created_at=created_at,
        updated_at=given.time("updated_at") or created_at,
        superseded_by=given.id("superseded_by"),
        superseded_at=given.time("superseded_at"),
        revisions=_revisions(given.parts("revisions"), now),
        tellings=_mentions(given.parts("tellings"), created_at),
        embeddings={
            part.text("model", required=True, most=128): part.vector("vector")
            for part in given.parts("embeddings")
        },
    )


def _visibility_without_any(chat_id: UUID | None) -> str:
    """Return the narrowest visibility: the chat's, or the owner's without a chat."""
    return str(Visibility.OWNER if chat_id is None else Visibility.CHAT)


def _mentions(parts: "list[_Fields]", created_at: datetime) -> list[dict[str, Any]]:
    return [
        {
            "source": part.text("source", most=64),
            "source_message_id": part.id("source_message_id"),
            "told_at": part.time("told_at") or created_at,
        }
        for part in parts
    ]


def _revisions(parts: "list[_Fields]", now: datetime) -> list[dict[str, Any]]:
    revisions = [
        {
            "number": part.count("number", default=0),
            "content": part.text("content", required=True),
            "value": part.object("value"),
            "visibility": part.choice("visibility", Visibility.values, default=""),
            "type": part.text("type", required=True, most=64),
            "category": part.text("category", most=64),
            "tags": part.texts("tags"),
            "changed_at": part.time("changed_at") or now,
            "changed_by_kind": part.text("changed_by_kind", most=16) or "system",
            "changed_by_name": part.text("changed_by_name", most=255),
            "reason": part.choice(
                "reason", RevisionReason.values, default=str(RevisionReason.UPDATED)
            ),
        }
        for part in parts
    ]
    if len({each["number"] for each in revisions}) < len(revisions):
        raise RecordError("revisions: " + _("a number stands there twice"))
    return revisions


class _Fields:
    """Read the fields of a JSON object by type."""

    def __init__(self, values: dict[str, Any], inside: str = "") -> None:
        self._values = values
        self._inside = inside

    def _refuse(self, name: str, detail: str) -> RecordError:
        return RecordError(f"{self._inside}{name}: {detail}")

    def text(self, name: str, *, required: bool = False, most: int = 0) -> str:
        value = self._values.get(name)
        if value is None:
            if required:
                raise self._refuse(name, _("is missing"))
            return ""
        if not isinstance(value, str):
            raise self._refuse(name, _("is not a text"))
        if "\x00" in value or any("\ud800" <= each <= "\udfff" for each in value):
            raise self._refuse(name, _("has characters that can't be stored"))
        if most and len(value) > most:
            detail = _("has %(count)s characters, at most %(most)s")
            raise self._refuse(name, detail % {"count": len(value), "most": most})
        return value

    def texts(self, name: str) -> list[str]:
        value = self._values.get(name) or []
        if not isinstance(value, list):
            raise self._refuse(name, _("is not a list"))
        return [
            _Fields({name: each}, self._inside).text(name, required=True, most=64) for each in value
        ]

    def id(self, name: str) -> UUID | None:
        value = self.text(name)
        try:
            return UUID(value) if value else None
        except ValueError:
            raise self._refuse(name, _("is not a UUID")) from None

    def time(self, name: str) -> datetime | None:
        value = self.text(name)
        if not value:
            return None
        try:
            found = parse_datetime(value)
        except ValueError:
            found = None
        if found is not None and found.tzinfo is None:
            logger.warning("%s%s has no time zone: it counts as UTC.", self._inside, name)
            found = found.replace(tzinfo=timezone.utc)
        if found is None or not is_storable(found):
            raise self._refuse(name, _("is not an ISO-8601 time"))
        return found.astimezone(timezone.utc)

    def number(self, name: str) -> float | None:
        value = self._values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._refuse(name, _("is not a number"))
        return float(value)

    def count(self, name: str, *, default: int) -> int:
        value = self._values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MAX_REPORTED:
            raise self._refuse(name, _("is not a number from 1 on"))
        return value

    def truth(self, name: str, *, default: bool = False) -> bool:
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise self._refuse(name, _("is neither true nor false"))
        return value

    def object(self, name: str) -> dict[str, Any] | None:
        value = self._values.get(name)
        if value is not None and (
            not isinstance(value, dict) or storable_metadata(value, log=False) != value
        ):
            raise self._refuse(name, _("is not an object that can be stored"))
        return value

    def choice(self, name: str, known: list[str], *, default: str) -> str:
        value = self.text(name) or default
        if value not in known:
            raise self._refuse(name, _("is one of %(known)s") % {"known": ", ".join(known)})
        return value

    def parts(self, name: str) -> "list[_Fields]":
        value = self._values.get(name) or []
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self._refuse(name, _("is not a list of objects"))
        return [_Fields(each, f"{name}.") for each in value]

    def vector(self, name: str) -> list[float]:
        value = self._values.get(name)
        if not isinstance(value, list) or not 1 <= len(value) <= _MAX_DIMENSIONS:
            raise self._refuse(name, _("is not a list of numbers"))
        # An integer may be too large for a float.
        numbers = [each for each in value if isinstance(each, int | float)]
        if len(numbers) < len(value) or not all(abs(each) < math.inf for each in numbers):
            raise self._refuse(name, _("is not a list of numbers"))
        if not any(value) or max(map(abs, value)) > 1e6:
            raise self._refuse(name, _("is no vector of length 1"))
        return [float(each) for each in value]
