"""Files of documents that wait to be read. They are deleted after reading."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from uuid import UUID

from memoryproject.foundation.integrations.documents.base import DocumentError
from memoryproject.foundation.text.uuids import uuid_or_none

INCOMING = ".incoming-"
SUFFIX = ".document"
# Longer than any program needs to write a file or waits for one.
LEFT_OVER_SECONDS = 3600.0


def document_file(folder: Path, document_id: UUID) -> Path:
    """Return the path of a document's file. The file name reveals nothing about the document."""
    return folder / f"{document_id}{SUFFIX}"


class IncomingFile:
    """A file that is being written, readable for its owner only.

    It is removed at the end of the ``with`` block unless ``put`` moved it to its place.
    """

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        descriptor, name = tempfile.mkstemp(prefix=INCOMING, dir=folder)
        self.path = Path(name)
        self.size = 0
        self._file = os.fdopen(descriptor, "wb")
        self._hash = hashlib.sha256()
        self._most_bytes = max_bytes

    @property
    def sha256(self) -> str:
        """Return the hex SHA-256 of what was written so far."""
        return self._hash.hexdigest()

    def write(self, block: bytes) -> None:
        """Append a block. Raises DocumentError if the file becomes too large; OSError."""
        self.size += len(block)
        if self.size > self._most_bytes:
            raise DocumentError("too_large")
        self._hash.update(block)
        self._file.write(block)

    def put(self, place: Path) -> None:
        """Move the complete file to its place. Raises OSError."""
        os.replace(self.finished(), place)

    def finished(self) -> Path:
        """Return where the complete file lies, once the disk has all of it. Raises OSError."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self.path

    def read(self) -> bytes:
        """Return what was written. Raises OSError."""
        self._file.flush()
        return self.path.read_bytes()

    def __enter__(self) -> IncomingFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._file.close()
        finally:
            self.path.unlink(missing_ok=True)


def file_remove(folder: Path, document_id: UUID) -> None:
    """Remove the file of a document, if it is there."""
    document_file(folder, document_id).unlink(missing_ok=True)


def files_lying(folder: Path) -> Iterator[tuple[Path, UUID | None, bool]]:
    """Yield each file in the folder with its document id and whether it is old enough to remove.

    The id is None for a file that is being written or belongs to no document.
    """
    oldest = time.time() - LEFT_OVER_SECONDS
    for path in sorted(folder.glob("*")):
        try:
            is_old = path.stat().st_mtime < oldest
        except FileNotFoundError:
            continue
        yield path, _named_after(path), is_old


def _named_after(path: Path) -> UUID | None:
    return uuid_or_none(path.name.removesuffix(SUFFIX))
