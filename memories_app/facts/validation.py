"""Validate memories before they are stored, without the database."""

import json
import logging
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _

from memories_app.errors import Problem
from memories_app.models import Visibility
from memoryproject.foundation.text.characters import shows_nothing

logger = logging.getLogger(__name__)

MAX_CONTENT = 8_192
MAX_LABEL = 64
MAX_TAGS = 20
MAX_METADATA_BYTES = 16 * 1024
MAX_VALUE_BYTES = 256 * 1024
# Of a namespace, and of a key.
MAX_PLACE = 256
_MAX_DEPTH = 20
# The type of a memory of what the business promised, the name in its metadata that holds its state,
# and the states.
PROMISE = "promise"
# The metadata of a promise that names no matter.
ONLY_ASKS = {PROMISE: {"only_asks": True}}
OPEN, KEPT, DROPPED = PROMISE_STATES = ("open", "kept", "dropped")
FACT_TIMES = ("said_at", "valid_from", "valid_until")


@dataclass(frozen=True)
class NewMemory:
    """A memory to store. ``chat_id`` is the chat it comes from, independent of its visibility.

    ``proposed``: it waits for staff and isn't recalled before their decision. ``supersedes``: it
    takes the place of memories that it contradicts. ``merges``: where it is known, its tags and
    metadata are added to those of the known memory. ``subject``: what it is about, where a table or
    another list says so; a newer text takes the place of the older one about the same subject.
    ``said_at``: None is now. ``valid_from`` and ``valid_until``: without both, the text says when
    it holds.
    ``speaker``: who said it, where several people write in the chat. ``dedupe``: False for a memory
    of its own, whatever others say. ``namespace``, ``key``, ``value``: of a keyed memory.
    """

    content: str
    visibility: str
    chat_id: UUID | None = None
    type: str = "fact"
    category: str = ""
    tags: tuple[str, ...] = ()
    source: str = ""
    source_message_id: UUID | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    confidence: float | None = None
    pinned: bool = False
    expires_at: datetime | None = None
    said_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    proposed: bool = False
    supersedes: bool = True
    merges: bool = False
    subject: str = ""
    speaker: str = ""
    dedupe: bool = True
    namespace: str | None = None
    key: str | None = None
    value: Mapping[str, Any] | None = None


def problems_of(new: NewMemory, place: int = 0) -> list[Problem]:
    """Return all problems of a memory."""
    found: list[tuple[str, str]] = [
        *_text_problems(
            "content", new.content, most=MAX_CONTENT, may_be_empty=new.value is not None
        ),
        *_keyed_problems(new),
        *_text_problems("type", new.type, most=MAX_LABEL),
        *_text_problems("category", new.category, most=MAX_LABEL, may_be_empty=True),
        *_text_problems("source", new.source, most=MAX_LABEL, may_be_empty=True),
        *tag_problems(new.tags),
        *visibility_problems(new.visibility, new.chat_id),
        *metadata_problems(new.metadata),
        *(promise_problems(new.metadata) if new.type == PROMISE else ()),
    ]
    if new.confidence is not None and not 0 <= new.confidence <= 1:
        found.append(("confidence", _("is from 0 to 1")))
    times = {name: getattr(new, name) for name in ("expires_at", *FACT_TIMES)}
    found += time_problems(times)
    return [Problem(name, detail, place) for name, detail in found]


def _keyed_problems(new: NewMemory) -> Iterator[tuple[str, str]]:
    """Yield the problems of the namespace, the key and the value of a keyed memory."""
    if new.namespace is None or new.key is None or new.value is None:
        if (new.namespace, new.key, new.value) != (None, None, None):
            yield "key", _("stands together with a namespace and a value, or not at all")
        return
    yield from _text_problems("namespace", new.namespace, most=MAX_PLACE)
    yield from _text_problems("key", new.key, most=MAX_PLACE)
    if not all(new.namespace.split(".")):
        yield "namespace", _("has an empty level: its levels are separated by single dots")
    if "/" in new.namespace:
        yield "namespace", _("has a slash, which ends it in an address: write %2F")
    if storable_metadata(new.value, log=False) != new.value:
        yield "value", _("is nested too deeply")
        return
    size = len(json.dumps(new.value, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_VALUE_BYTES:
        reason = _("has %(count)s bytes, at most %(most)s")
        yield "value", reason % {"count": size, "most": MAX_VALUE_BYTES}


def time_problems(times: Mapping[str, datetime | None]) -> Iterator[tuple[str, str]]:
    """Yield the problems of the times of a memory, as field and detail."""
    given = {name: at for name, at in times.items() if at is not None}
    naive = [name for name, at in given.items() if timezone.is_naive(at)]
    yield from ((name, _("has no time zone")) for name in naive)
    if naive:
        return
    if "said_at" in given and given["said_at"] > timezone.now():
        yield "said_at", _("is in the future")
    begins, ends = given.get("valid_from"), given.get("valid_until")
    if begins is not None and ends is not None and ends < begins:
        yield "valid_until", _("is before valid_from")


def label_problems(**labels: str) -> list[Problem]:
    """Return the problems of a changed content, type or category, by field name."""
    return [
        Problem(name, detail)
        for name, text in labels.items()
        for _name, detail in _text_problems(
            name,
            text,
            most=MAX_CONTENT if name == "content" else MAX_LABEL,
            may_be_empty=name == "category",
        )
    ]


def tag_problems(tags: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the problems of tags, as field and detail."""
    if len(tags) > MAX_TAGS:
        text = _("are %(count)s, at most %(most)s")
        yield "tags", text % {"count": len(tags), "most": MAX_TAGS}
    for tag in tags[:MAX_TAGS]:
        yield from _text_problems("tags", tag, most=MAX_LABEL)


def visibility_problems(visibility: str, chat_id: UUID | None) -> Iterator[tuple[str, str]]:
    """Yield the problems of the visibility, as field and detail."""
    if visibility not in Visibility.values:
        yield "visibility", _("is one of %(known)s") % {"known": ", ".join(Visibility.values)}
    elif visibility == str(Visibility.CHAT) and chat_id is None:
        yield ("visibility", _("is chat, but the memory came from no chat: choose owner or public"))


def _text_problems(
    name: str, text: str, *, most: int, may_be_empty: bool = False
) -> Iterator[tuple[str, str]]:
    if not isinstance(text, str):
        yield name, _("is not a text")
        return
    if shows_nothing(text) and not (may_be_empty and not text):
        yield name, _("is empty")
    if "\x00" in text:
        yield name, _("has a NUL character, which can't be stored")
    if len(text) > most:
        reason = _("has %(count)s characters, at most %(most)s")
        yield name, reason % {"count": len(text), "most": most}
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        yield name, _("has half a character (a lone surrogate), which can't be stored")


def metadata_problems(metadata: Any) -> Iterator[tuple[str, str]]:
    """Yield the problems of a memory's metadata, as the field's name and the reason."""
    if not isinstance(metadata, Mapping):
        yield "metadata", _("is not an object of names and values")
        return
    size = len(json.dumps(storable_metadata(metadata, log=False), ensure_ascii=False).encode())
    if size > MAX_METADATA_BYTES:
        reason = _("has %(count)s bytes, at most %(most)s")
        yield "metadata", reason % {"count": size, "most": MAX_METADATA_BYTES}


def promise_problems(metadata: Any) -> Iterator[tuple[str, str]]:
    """Yield the problems of a promise's state: see ``sessions_app/promises``."""
    promise = metadata.get(PROMISE, {}) if isinstance(metadata, Mapping) else {}
    if not isinstance(promise, Mapping):
        yield "metadata", _("has a promise that is no object")
        return
    if promise.get("state", OPEN) not in PROMISE_STATES:
        text = _("has a promise whose state is none of %(known)s")
        yield "metadata", text % {"known": ", ".join(PROMISE_STATES)}
    due = promise.get("due")
    if due is not None and not _is_iso(due):
        yield "metadata", _("has a promise whose due is no day or time, such as 2026-03-08")


def promise_completed(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a promise with a state; one without a state is open."""
    given = metadata.get(PROMISE)
    stored = given if isinstance(given, Mapping) else {}
    return {**metadata, PROMISE: {"state": OPEN, "by": "business", "due": None, **stored}}


def _is_iso(text: Any) -> bool:
    # "20260308" and "2026-W11-4" are ISO, too, but due days are compared as texts.
    if not (isinstance(text, str) and re.match(r"\d{4}-\d\d-\d\d", text)):
        return False
    try:
        return bool(datetime.fromisoformat(text.replace("Z", "+00:00")))
    except ValueError:
        return False


def storable_metadata(metadata: Mapping[str, Any], *, log: bool = True) -> dict[str, Any]:
    """Return the metadata as JSON can hold it.

    Times become ISO text. Fields with any other value that isn't JSON are left out with a
    WARNING (ERR-MEMORY-006).
    """
    kept: dict[str, Any] = {}
    dropped = []
    for name, value in metadata.items():
        try:
            kept[_plain_text(name)] = _storable(value, _MAX_DEPTH)
        except _NotStorable:
            dropped.append(ascii(name)[:80])
    if dropped and log:
        logger.warning("Metadata that can't be stored was left out: %s.", ", ".join(dropped))
    return kept


class _NotStorable(Exception):
    """PostgreSQL's JSON can't hold the value."""


def _storable(value: Any, deepest: int) -> Any:
    if deepest == 0:
        raise _NotStorable
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, str):
        return _plain_text(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {_plain_text(name): _storable(each, deepest - 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(each, deepest - 1) for each in value]
    raise _NotStorable


def _plain_text(value: Any) -> str:
    unfit = not isinstance(value, str) or "\x00" in value
    if unfit or any("\ud800" <= character <= "\udfff" for character in value):
        raise _NotStorable
    return str(value)
