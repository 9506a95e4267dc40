"""The form in which events are signed and written. Does not depend on Django.

Everything signed is a JSON array of texts and numbers in ASCII. Values that differ in any part
differ in their bytes, since JSON decodes to the encoded value.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any, NamedTuple


class Fields(NamedTuple):
    """A sealed row without its seal.

    ``details`` is the text in which PostgreSQL writes the JSON: numbers keep all their digits in
    it, and keys have one order.
    """

    seq: int
    id: int
    at: datetime
    action: str
    actor_kind: str
    actor: str
    chat: str
    object_type: str
    object_id: str
    content_hash: str
    details: str


class LineHead(NamedTuple):
    """The number, id and seal in a line of the log file."""

    seq: int
    id: int
    seal: str


def signed_bytes(purpose: str, *parts: str | int) -> bytes:
    """Return the bytes to sign. ``purpose`` makes signatures of one kind invalid for another."""
    return json.dumps([purpose, *parts], separators=(",", ":")).encode("ascii")


def sign(key: str, purpose: str, *parts: str | int) -> str:
    """Return the HMAC-SHA256 of the parts with the key, in hex."""
    return hmac.digest(key.encode(), signed_bytes(purpose, *parts), "sha256").hex()


def is_signed(mac: str, key: str, purpose: str, *parts: str | int) -> bool:
    return hmac.compare_digest(mac.encode(), sign(key, purpose, *parts).encode())


def utc_text(at: datetime) -> str:
    """Return the time in ISO 8601, in UTC with microseconds."""
    if at.tzinfo is None:
        raise ValueError("a time without a zone")
    utc = at.astimezone(timezone.utc).replace(tzinfo=None)
    return utc.isoformat(timespec="microseconds") + "Z"


def canonical(fields: Fields) -> tuple[str | int, ...]:
    """Return the parts of a row that its seal covers."""
    return tuple(utc_text(part) if isinstance(part, datetime) else part for part in fields)


def seal_of(key: str, previous: str, fields: Fields) -> str:
    """Return the seal of a row. ``previous``: the seal of the row before; empty for the first."""
    return sign(key, "event", previous, *canonical(fields))


def line_of(fields: Fields, seal: str) -> bytes:
    """Return the line of the log file: one JSON object, always the same bytes for an event."""
    parts = dict(zip(Fields._fields, canonical(fields), strict=True))
    del parts["details"]
    head = json.dumps(parts, ensure_ascii=False, separators=(", ", ": "))
    line = f'{head[:-1]}, "details": {fields.details}, "seal": "{seal}"}}\n'
    return line.encode()


def line_read(line: bytes, number: Callable[[str], Any] = int) -> dict[str, Any] | None:
    """Return the object of a line, or None if it is not a complete line of this log.

    ``number`` parses the text of each whole number.
    """
    if not line.endswith(b"\n"):
        return None
    try:
        found = json.loads(line, parse_int=number, parse_float=str)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def line_head(line: bytes) -> LineHead | None:
    """Return the head of a line, or None if it is not a complete line of this log."""
    found = line_read(line) or {}
    head = LineHead(found.get("seq", 0), found.get("id", 0), found.get("seal", ""))
    whole = type(head.seq) is int and type(head.id) is int and isinstance(head.seal, str)
    return head if whole and 0 < head.seq < 2**63 and abs(head.id) < 2**63 else None
