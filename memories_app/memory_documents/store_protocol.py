"""The protocol of a store of memory documents, and the records it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from memories_app.memory_document_format.facade import (
    CATEGORIES,
    SUFFIX,
    Envelope,
    Pattern,
    Problem,
    printable,
)

CREATED, UPDATED, UNCHANGED, CONFLICT = "created", "updated", "unchanged", "conflict"
ANOTHER_TEXT = "another text stands there"
ARCHIVE = "archive"

# Called with the number done and the total.
Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Key:
    """The place of a document. ``name`` is that of its file, without ``.json``.

    Foreign files may have names that are invalid for documents.
    """

    category: str
    name: str
    archived: bool = False

    @property
    def path(self) -> str:
        """Return the path of the file below the root of a tree, printable."""
        folder = f"{ARCHIVE}/{self.category}" if self.archived else self.category
        return f"{folder}/{printable(self.name)}{SUFFIX}"


@dataclass(frozen=True)
class Kept:
    """A document with its place."""

    key: Key
    envelope: Envelope


@dataclass(frozen=True)
class Found:
    """The fields of a document in lists."""

    key: Key
    summary: str
    created: datetime
    changed: datetime
    status: str
    session_id: str

    @classmethod
    def of(cls, kept: Kept) -> Found:
        envelope = kept.envelope
        return cls(
            key=kept.key,
            summary=envelope.summary,
            created=envelope.created,
            changed=envelope.changed,
            status=envelope.status,
            session_id=envelope.session_id,
        )


@dataclass(frozen=True)
class Broken:
    """An entry that should be a document but is invalid. It is never changed."""

    path: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class Saved:
    """The result of saving. ``outcome``: created, updated or unchanged.

    ``archived_as``: the archived name of a handoff that this save completed.
    """

    key: Key
    outcome: str
    envelope: Envelope
    archived_as: Key | None = None


@dataclass(frozen=True)
class Removed:
    """The names of what a cleanup removed, or would remove."""

    names: tuple[str, ...]
    broken: tuple[Broken, ...] = ()


@dataclass(frozen=True)
class Put:
    """The result for a document that was put; ``detail`` gives the reason of a conflict."""

    key: Key
    outcome: str
    detail: str = ""


@dataclass(frozen=True)
class Filter:
    """A filter for lists; the default matches all documents. ``since``: changed then or later."""

    categories: Sequence[str] = CATEGORIES
    pattern: Pattern | None = None
    since: datetime | None = None
    archived: bool = False

    def fits_name(self, category: str, name: str) -> bool:
        return self.pattern is None or self.pattern.fits(category, name)

    def fits_time(self, changed: datetime) -> bool:
        return self.since is None or changed >= self.since


class MemoryDocumentStore(Protocol):
    """A store of memory documents. Errors are MemoryDocumentError; then nothing was changed.

    In ``context`` an identifier without a date means the newest document of that name.
    """

    def save(
        self,
        *,
        category: str,
        identifier: str,
        content: Mapping[str, Any],
        session_id: str | None = None,
    ) -> Saved:
        """Create or update a document. A completed handoff is archived.

        Raises MemoryDocumentInvalidError, also if the existing document is broken.
        """
        ...

    def load(self, *, category: str, identifier: str, archived: bool = False) -> Kept:
        """Load a document. Raises MemoryDocumentNotFoundError, MemoryDocumentInvalidError."""
        ...

    def find(self, wanted: Filter) -> Iterator[Found | Broken]:
        """Yield documents by category, then by name. Only a few are in memory at once."""
        ...

    def cleanup(
        self,
        *,
        category: str,
        older_than: timedelta,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Removed:
        """Remove documents that were last saved longer ago; never archived ones."""
        ...

    def archive(self, *, category: str, identifier: str) -> Key:
        """Archive a document and return its new place; never overwrite an archived document.

        Raises MemoryDocumentNotFoundError, MemoryDocumentInvalidError.
        """
        ...

    def count(self) -> int:
        """Return the number of documents, including archived and broken ones."""
        ...

    def walk(self) -> Iterator[Kept | Broken]:
        """Yield all documents, including archived ones. Only a few are in memory at once."""
        ...

    def put(self, documents: Sequence[Kept], *, replace: bool = False) -> list[Put]:
        """Store documents unchanged, each at its place.

        An existing document with another text is a conflict and stays, unless ``replace`` is set.
        """
        ...
