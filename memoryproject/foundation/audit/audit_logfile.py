"""The log file of sealed events: one JSON line each. Does not depend on Django.

The writer holds the chain's lock, so there is one writer at a time.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from memoryproject.foundation.audit.canonical import line_head
from memoryproject.foundation.process.private_folders import folder_sync

logger = logging.getLogger(__name__)

BLOCK = 1024 * 1024
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
        fresh = self.path.with_name(f".{self.path.name}.new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        try:
            with os.fdopen(descriptor, "wb") as file:
                count = sum(1 for line in lines if file.write(line))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
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
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            place = _end_of_last_line(file)
            rest = b""
            while place > 0:
                size = min(BLOCK, place)
                place -= size
                file.seek(place)
                first, *lines = (file.read(size) + rest).split(b"\n")
                # Only the last piece of the file has no line end after it, and it is empty.
                yield from (line + b"\n" for line in reversed(lines) if line)
                rest = first + b"\n"
            if rest:
                yield rest


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
    whole = _end_of_last_line(file)
    if whole < size:
        logger.warning("The audit log file ended in a line cut off; it is written again.")
        os.ftruncate(file.fileno(), whole)
    return whole


def _end_of_last_line(file: BinaryIO | FileIO) -> int:
    place = file.seek(0, os.SEEK_END)
    while place > 0:
        size = min(BLOCK, place)
        file.seek(place - size)
        found = file.read(size).rfind(b"\n")
        if found >= 0:
            return place - size + found + 1
        place -= size
    return 0
