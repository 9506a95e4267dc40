"""A memory document as text: an envelope with metadata and the content."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from memories_app.memory_document_format import names
from memories_app.memory_document_format.strict_json import (
    MemoryDocumentInvalidError,
    Problem,
    Problems,
    Shape,
    kind,
    read_json,
    shape_problems,
    shown,
)
from memoryproject.foundation.process.narrowing import present
from memoryproject.foundation.text.characters import shows_nothing


def _stamp_fault(text: str) -> str:
    example = "2025-11-25T10:30:00Z"
    wrong = f"must be an ISO 8601 time with Z, such as {example}: {shown(text)}"
    return wrong if read_stamp(text) is None else ""


_META: Shape = {
    "created": _stamp_fault,
    "category": names.CATEGORIES,
    "summary": lambda text: "is empty" if shows_nothing(text) else "",
    "session_id": str,
}
REQUIRED_META = ("created", "category", "summary")
# What a save writes or takes over itself.
KEPT_META = {*REQUIRED_META, "updated", "session_id"}
_PERCENT = re.compile(r"(\d{1,3})\s?%", re.ASCII)


@dataclass(frozen=True)
class Envelope:
    """A valid document. ``text`` is the text of its file, ``value`` the parsed JSON."""

    text: str
    value: Mapping[str, Any]

    @property
    def meta(self) -> Mapping[str, Any]:
        meta: Mapping[str, Any] = self.value["meta"]
        return meta

    @property
    def content(self) -> Mapping[str, Any]:
        content: Mapping[str, Any] = self.value["content"]
        return content

    @property
    def category(self) -> str:
        return str(self.meta["category"])

    @property
    def summary(self) -> str:
        return str(self.meta["summary"])

    @property
    def session_id(self) -> str:
        return str(self.meta.get("session_id") or "")

    @property
    def created(self) -> datetime:
        return present(read_stamp(self.meta["created"]))

    @property
    def changed(self) -> datetime:
        """Return when it was last saved: ``updated`` if it is present and a valid time."""
        updated = self.meta.get("updated")
        found = read_stamp(updated) if isinstance(updated, str) else None
        return found or self.created

    @property
    def status(self) -> str:
        """Return the status as a word for lists: a decision's status, a handoff's percentage."""
        if self.category == names.DECISIONS:
            return str(self.content.get("status", ""))
        progress = str(self.content.get("progress", "")).strip()
        found = _PERCENT.fullmatch(progress) if self.category == names.HANDOFFS else None
        return f"{int(found[1])}%" if found else ""

    @property
    def is_completed(self) -> bool:
        """Return whether a handoff is done: progress is 100%, nothing is pending or blocks."""
        is_open = self.content.get("pending") or self.content.get("blockers")
        return self.category == names.HANDOFFS and self.status == names.COMPLETE and not is_open

    @property
    def sha256(self) -> str:
        """Return the hex SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def envelope_read(raw: bytes | str, *, category: str = "", place: str = "") -> Envelope:
    """Read a document. ``category`` is the required one, given by the folder that it is in.

    Raises MemoryDocumentInvalidError with every problem; ``place`` names the document there.
    """
    reading = read_json(raw)
    problems = reading.problems
    if reading.is_whole:
        problems = [*problems, *_envelope_problems(reading.value, category)]
    if problems:
        raise MemoryDocumentInvalidError(problems, place=place)
    text = raw if isinstance(raw, str) else raw.decode()
    return Envelope(text.removeprefix("\ufeff"), reading.value)


def _envelope_problems(value: Any, category: str) -> Problems:
    if not isinstance(value, dict):
        yield Problem("", f"must be an object, not {kind(value)}")
        return
    for name in ("meta", "content"):
        if name not in value:
            yield Problem(name, "is missing")
    meta = value.get("meta")
    if "meta" in value:
        yield from _meta_problems(meta)
    own = meta.get("category") if isinstance(meta, dict) else None
    known = own in names.CATEGORIES if isinstance(own, str) else False
    if known and category and own != category:
        yield Problem("meta.category", f"is {own}, but the document is among the {category}")
    if "content" in value and (known or category):
        yield from shape_problems(value["content"], names.CONTENT[category or str(own)], "content")


def _meta_problems(meta: Any) -> Problems:
    if isinstance(meta, dict):
        for name in REQUIRED_META:
            if name not in meta:
                yield Problem(f"meta.{name}", "is missing")
        # Programs that have no session write null.
        if meta.get("session_id", "") is None:
            meta = {**meta, "session_id": ""}
    yield from shape_problems(meta, _META, "meta")


@dataclass(frozen=True)
class GivenContent:
    """The content of a document to save; ``session_id`` if a whole document named one."""

    content: dict[str, Any]
    session_id: str | None = None


def content_read(category: str, raw: bytes | str) -> GivenContent:
    """Read the content of a document to save.

    A whole document, as ``load`` prints it, counts as its content. Its metadata must be valid and
    of the category, and it must have no fields that a save would lose.

    Raises MemoryDocumentInvalidError; paths of the content begin with ``content``.
    """
    reading = read_json(raw)
    if reading.is_whole and not reading.problems and is_document(reading.value):
        return _content_of(reading.value, category)
    problems = [Problem(_under_content(each.path), each.detail) for each in reading.problems]
    if reading.is_whole:
        problems += shape_problems(reading.value, names.CONTENT[category], "content")
    if problems:
        raise MemoryDocumentInvalidError(problems)
    return GivenContent(reading.value)


def is_document(value: Any) -> bool:
    """Return whether a value is a whole document, with metadata and content."""
    meta = value.get("meta") if isinstance(value, Mapping) else None
    return isinstance(meta, Mapping) and "content" in value and meta.keys() >= set(REQUIRED_META)


def _content_of(value: Mapping[str, Any], category: str) -> GivenContent:
    meta = value["meta"]
    problems = list(_envelope_problems(value, category))
    problems += [
        Problem(path, "would be lost: save only the content, or import the document as a file")
        for path in (
            *(name for name in value if name not in ("meta", "content")),
            *(f"meta.{name}" for name in meta if name not in KEPT_META),
        )
    ]
    if problems:
        raise MemoryDocumentInvalidError(problems)
    return GivenContent(dict(value["content"]), meta.get("session_id"))


def _under_content(path: str) -> str:
    separator = "." if path and not path.startswith("[") else ""
    return f"content{separator}{path}"


def envelope_saved(
    old: Envelope | None,
    *,
    category: str,
    summary: str,
    content: Mapping[str, Any],
    session_id: str | None,
    now: datetime,
) -> Envelope:
    """Return the document after saving, based on the existing one if there is one.

    Return the existing one if nothing changes. Raises MemoryDocumentInvalidError.
    """
    if is_document(content):
        detail = "is a whole document, with meta and content: give the content alone"
        raise MemoryDocumentInvalidError([Problem("content", detail)])
    if old is not None:
        return _updated(old, content=content, session_id=session_id, now=now)
    meta = {"created": stamp(now.replace(microsecond=0)), "category": category, "summary": summary}
    if session_id is not None:
        meta["session_id"] = session_id
    return _written({"meta": meta, "content": content}, category)


def _updated(
    old: Envelope, *, content: Mapping[str, Any], session_id: str | None, now: datetime
) -> Envelope:
    """Keep the metadata, and set ``updated`` to the time of the change."""
    same_session = session_id is None or session_id == old.meta.get("session_id")
    if same_session and _written_alike(content, old.content):
        return old
    meta = {**old.meta, "updated": stamp(now.replace(microsecond=0))}
    if session_id is not None:
        meta["session_id"] = session_id
    return _written({**old.value, "meta": meta, "content": content}, old.category)


def _written_alike(one: Any, other: Any) -> bool:
    """Return whether both are the same text. As values 1, 1.0 and true would be equal."""
    return json.dumps(one) == json.dumps(other)


def _written(value: Mapping[str, Any], category: str) -> Envelope:
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    return envelope_read(text, category=category)


# Timestamps and durations as the format writes them.

_STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?Z", re.ASCII)
_DURATION = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
MAX_LENGTH = timedelta(days=36_500)


def read_stamp(text: str) -> datetime | None:
    """Parse an ISO 8601 timestamp with the suffix Z; return None for anything else.

    The first and the last possible year also give None: not every time zone can hold them.
    """
    found = _STAMP.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    fraction = int((found[7] or "").ljust(6, "0")[:6])
    try:
        at = datetime(year, month, day, hour, minute, second, fraction, timezone.utc)
    except ValueError:
        return None
    return at if 1 < at.year < 9999 else None


def stamp(at: datetime) -> str:
    """Return the timestamp of a time, without fractions if it is a whole second."""
    utc = at.astimezone(timezone.utc).replace(tzinfo=None)
    return utc.isoformat() + "Z"


def read_duration(text: str) -> timedelta:
    """Parse 30m, 24h, 7d, 2w or 45s. Raises ValueError, which states the expected form."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no duration such as 7d, 24h, 2w or 30m")
    try:
        duration = timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        duration = MAX_LENGTH * 2
    if duration > MAX_LENGTH:
        raise ValueError(f"{text} is longer than {MAX_LENGTH.days} days")
    return duration
