"""What a store of memory documents does, whatever it keeps them in."""

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

# Is told how much is done, and of how much.
Progress = Callable[[int, int], None]


def no_progress(done: int, total: int) -> None:
    """For who doesn't watch."""


@dataclass(frozen=True)
class Key:
    """Where a document stands. ``name`` is that of its file, without ``.json``; foreign files
    may have names that documents can't have."""

    category: str
    name: str
    archived: bool = False

    @property
    def path(self) -> str:
        """The file's, below the folder of a tree, as it can be shown."""
        folder = f"{ARCHIVE}/{self.category}" if self.archived else self.category
        return f"{folder}/{printable(self.name)}{SUFFIX}"


@dataclass(frozen=True)
class Kept:
    """A document with its place."""

    key: Key
    envelope: Envelope


@dataclass(frozen=True)
class Found:
    """What lists show of a document."""

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
    """Something that should be a document and isn't. It is left alone."""

    path: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class Saved:
    """``outcome``: created, updated or unchanged. ``archived_as``: where a handoff went that
    is completed by it."""

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
    """What became of a document that was brought in; ``detail`` says why it is a conflict."""

    key: Key
    outcome: str
    detail: str = ""


@dataclass(frozen=True)
class Filter:
    """Which documents a list shows: all of them by default. ``since``: changed then or later."""

    categories: Sequence[str] = CATEGORIES
    pattern: Pattern | None = None
    since: datetime | None = None
    archived: bool = False

    def fits_name(self, category: str, name: str) -> bool:
        return self.pattern is None or self.pattern.fits(category, name)

    def fits_time(self, changed: datetime) -> bool:
        return self.since is None or changed >= self.since


class MemoryDocumentStore(Protocol):
    """Errors are MemoryDocumentError; then nothing was changed. In ``context`` an identifier
    without a date means the newest document of that name."""

    def save(
        self,
        *,
        category: str,
        identifier: str,
        content: Mapping[str, Any],
        session_id: str | None = None,
    ) -> Saved:
        """Create or update. A handoff that is completed is archived. Raises
        MemoryDocumentInvalidError also where what is there already is broken."""
        ...

    def load(self, *, category: str, identifier: str, archived: bool = False) -> Kept:
        """Raises MemoryDocumentNotFoundError, MemoryDocumentInvalidError."""
        ...

    def find(self, wanted: Filter) -> Iterator[Found | Broken]:
        """In the order of the categories, then of the names. Few are held at once."""
        ...

    def cleanup(
        self,
        *,
        category: str,
        older_than: timedelta,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Removed:
        """Remove what was last saved longer ago; never what is archived."""
        ...

    def archive(self, *, category: str, identifier: str) -> Key:
        """Returns where it is now; an archived document is never overwritten. Raises
        MemoryDocumentNotFoundError, MemoryDocumentInvalidError."""
        ...

    def count(self) -> int:
        """How many there are, archived and broken ones among them."""
        ...

    def walk(self) -> Iterator[Kept | Broken]:
        """All of them, archived ones too. Few are held at once."""
        ...

    def put(self, documents: Sequence[Kept], *, replace: bool = False) -> list[Put]:
        """Bring in documents as they are, each at its place. What stands there already with
        another text is a conflict and stays, unless ``replace``."""
        ...
