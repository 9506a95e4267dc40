"""The log file of sealed events: one JSON line each. Does not depend on Django.

The writer holds the chain's lock, so there is one writer at a time.
"""

import hmac
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from io import FileIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple

from memoryproject.foundation.process.storage import file_replaced, folder_sync

logger = logging.getLogger(__name__)

MAX_LINE_LENGTH = 256 * 1024
OWNER_ONLY = 0o600


class AuditLogFile:
    """A file of mode 600, in a folder of mode 700."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, lines: bytes) -> None:
        """Append complete lines; they are on the disk when this returns.

        Raises OSError; then the file is unchanged.
        """
        with self._opened() as file:
            size = _whole_lines(file)
            try:
                file.seek(size)
                _write_all(file.fileno(), lines)
                os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):
                    os.ftruncate(file.fileno(), size)
                raise

    def sync(self) -> None:
        """Write the file's content to the disk before this returns. Raises OSError."""
        with self._opened() as file:
            os.fsync(file.fileno())

    def lines_after(self, seq: int, *, at_most: int) -> list[bytes]:
        """Return the complete lines at the end of the file with a number greater than ``seq``.

        Returns at most ``at_most`` lines, the last ones. Reads no more of the file than that.
        """
        found: list[bytes] = []
        for line in self._backwards():
            head = line_head(line)
            if head is None or head.seq <= seq or len(found) == at_most:
                break
            found.append(line)
        return found[::-1]

    def rewrite(self, lines: Iterable[bytes]) -> int:
        """Replace all lines, or leave the file unchanged; return how many were written.

        Raises OSError.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file_replaced(self.path) as file:
            count = sum(1 for line in lines if file.write(line))
        folder_sync(self.path.parent)
        return count

    def drop(self, is_old: Callable[[int], bool]) -> int:
        """Remove the lines whose number is old, and return how many.

        Other lines that are not of this log stay. Raises OSError.
        """
        if not self.path.exists():
            return 0
        with self.path.open("rb") as file:
            dropped = sum(_is_dropped(line, is_old) for line in file)
            if dropped:
                file.seek(0)
                self.rewrite(line for line in file if not _is_dropped(line, is_old))
        return dropped

    @contextmanager
    def _opened(self) -> Iterator[FileIO]:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_new = not self.path.exists()
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
        # Unbuffered: closing must not retry data that couldn't be written.
        with FileIO(descriptor, "r+b") as file:
            yield file
        if is_new:
            folder_sync(self.path.parent)

    def _backwards(self) -> Iterator[bytes]:
        """Yield the complete lines from the last to the first."""
        if not self.path.exists() or not self.path.stat().st_size:
            return
        with self.path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            end = content.rfind(b"\n") + 1
            while end > 0:
                start = content.rfind(b"\n", 0, end - 1) + 1
                if end - start > 1:
                    yield content[start:end]
                end = start


def _is_dropped(line: bytes, is_old: Callable[[int], bool]) -> bool:
    head = line_head(line)
    return head is not None and is_old(head.seq)


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _whole_lines(file: FileIO) -> int:
    """Remove a last line that a crash left unfinished; return the file's size."""
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return 0
    with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        whole = content.rfind(b"\n") + 1
    if whole < size:
        logger.warning("The audit log file ended in a line cut off; it is written again.")
        os.ftruncate(file.fileno(), whole)
    return whole


# The form in which events are signed and written. Does not depend on Django.


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
