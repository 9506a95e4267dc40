"""A store of memory documents: what all stores do alike, and the copy from one to another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from memories_app.memory_document_format import names as spelling, strict_json
from memories_app.memory_document_format.envelope import Envelope, envelope_saved

if TYPE_CHECKING:  # A tree needs no Django.
    from memories_app.models import MemoryDocument

CREATED, UPDATED, UNCHANGED, CONFLICT = "created", "updated", "unchanged", "conflict"
ARCHIVE = "archive"
# All places of documents: a category, and whether it is the one in the archive.
PLACES = [(category, archived) for archived in (False, True) for category in spelling.CATEGORIES]

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
        return f"{folder}/{strict_json.printable(self.name)}{spelling.SUFFIX}"

    def not_found(self) -> strict_json.MemoryDocumentNotFoundError:
        return strict_json.MemoryDocumentNotFoundError(f"There is no {self.path}.")


@dataclass(frozen=True)
class Kept:
    """A document with its place."""

    key: Key
    envelope: Envelope


@dataclass(frozen=True)
class Found:
    """A document in lists. ``about`` has its summary, created, changed, status and session_id."""

    key: Key
    about: Envelope | MemoryDocument


@dataclass(frozen=True)
class Broken:
    """An entry that should be a document but is invalid. It is never changed."""

    path: str
    problems: tuple[strict_json.Problem, ...]


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

    categories: Sequence[str] = spelling.CATEGORIES
    pattern: spelling.Pattern | None = None
    since: datetime | None = None
    archived: bool = False

    def fits_name(self, category: str, name: str) -> bool:
        return self.pattern is None or self.pattern.fits(category, name)


class MemoryDocumentStore(ABC):
    """A store of memory documents. Errors are MemoryDocumentError; then nothing was changed.

    In ``context`` an identifier without a date means the newest document of that name.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def save(
        self,
        *,
        category: str,
        identifier: str,
        content: Mapping[str, Any],
        session_id: str | None = None,
        check: Callable[[Kept | None], None] = lambda _: None,
    ) -> Saved:
        """Create or update a document. A completed handoff is archived.

        ``check`` gets the existing document or None before any change; its errors are passed on.
        Raises MemoryDocumentInvalidError, also if the existing document is broken.
        """
        now = self._now()
        key = Key(category, spelling.name_for(category, identifier, now.date()))
        values: dict[str, Any] = {
            "category": category,
            "summary": spelling.identifier_of(category, key.name),
            "content": content,
            "session_id": session_id,
            "now": now,
        }
        new = envelope_saved(None, **values)
        with self._writing(category):
            old = self._existing(key)
            check(old)
            outcome = CREATED
            if old is not None:
                new = envelope_saved(old.envelope, **values)
                outcome = UNCHANGED if new is old.envelope else UPDATED
            if outcome != UNCHANGED:
                self._write(Kept(key, new), is_new=old is None, now=now)
            archived_as = self._archive(key) if new.is_completed else None
        return Saved(key, outcome, new, archived_as)

    def load(self, *, category: str, identifier: str, archived: bool = False) -> Kept:
        """Load a document. Raises MemoryDocumentNotFoundError, MemoryDocumentInvalidError."""
        return self._read(self._meant(category, identifier, archived=archived))

    def archive(self, *, category: str, identifier: str) -> Key:
        """Archive a document and return its new place; never overwrite an archived document.

        Raises MemoryDocumentNotFoundError, MemoryDocumentInvalidError.
        """
        # Before the lock, too: nothing is created for a document that isn't there.
        self._meant(category, identifier)
        with self._writing(category):
            key = self._meant(category, identifier)
            self._read(key)
            return self._archive(key)

    @abstractmethod
    def find(self, wanted: Filter) -> Iterator[Found | Broken]:
        """Yield documents by category, then by name. Only a few are in memory at once."""

    def cleanup(
        self,
        *,
        category: str,
        older_than: timedelta,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Removed:
        """Remove documents that were last saved longer ago; never archived ones."""
        before = self._now() - older_than
        return self._cleanup(category, before, dry_run=dry_run, progress=progress)

    @abstractmethod
    def count(self) -> int:
        """Return the number of documents, including archived and broken ones."""

    @abstractmethod
    def walk(self) -> Iterator[Kept | Broken]:
        """Yield all documents, including archived ones. Only a few are in memory at once."""

    def put(self, documents: Sequence[Kept], *, replace: bool = False) -> list[Put]:
        """Store documents unchanged, each at its place.

        An existing document with another text is a conflict and stays, unless ``replace`` is set.
        One that was just stored under the same name isn't replaced.
        """
        puts: dict[Key, list[Put]] = {}
        with self._writing(*{document.key.category for document in documents}):
            for document in documents:
                earlier = puts.setdefault(document.key, [])
                earlier.append(self._put(document, replace=replace and not earlier))
        return [puts[document.key].pop(0) for document in documents]

    def _put(self, document: Kept, *, replace: bool) -> Put:
        key = document.key
        there = self._kept_or_broken(key)
        if isinstance(there, Broken):
            return Put(key, CONFLICT, f"what is there is broken: {there.problems[0]}")
        if there is None:
            is_known = not key.archived and self._is_archived_by_now(document)
        else:
            is_known = there.envelope.sha256 == document.envelope.sha256
        if is_known:
            return Put(key, UNCHANGED)
        if there is not None and not replace:
            return Put(key, CONFLICT, "another text stands there")
        self._write(document, is_new=there is None, now=self._now(), action="import")
        return Put(key, CREATED if there is None else UPDATED)

    def _is_archived_by_now(self, document: Kept) -> bool:
        """Return whether the same text was archived here since; then it isn't restored."""
        category, name = document.key.category, document.key.name
        names = spelling.numbers_of(name, self._archived_like(category, name))
        there = (self._kept_or_broken(Key(category, each, archived=True)) for each in names)
        return any(
            isinstance(one, Kept) and one.envelope.text == document.envelope.text for one in there
        )

    def _kept_or_broken(self, key: Key) -> Kept | Broken | None:
        """Read a document; None if there is none."""
        try:
            return self._read(key)
        except strict_json.MemoryDocumentNotFoundError:
            return None
        except strict_json.MemoryDocumentInvalidError as error:
            return Broken(key.path, tuple(error.problems))

    def _meant(self, category: str, identifier: str, *, archived: bool = False) -> Key:
        """Return the document that an identifier means. Raises MemoryDocumentNotFoundError."""
        identifier = spelling.identifier_read(identifier)
        names = self._names_like(Key(category, identifier, archived))
        name = spelling.newest(category, identifier, names)
        if name is None:
            raise Key(category, identifier, archived).not_found()
        return Key(category, name, archived)

    def _existing(self, key: Key) -> Kept | None:
        try:
            return self._read(key)
        except strict_json.MemoryDocumentNotFoundError:
            return None

    @abstractmethod
    def _cleanup(
        self, category: str, before: datetime, *, dry_run: bool, progress: Progress
    ) -> Removed:
        """Do ``cleanup`` of documents that were last saved before this time."""

    @abstractmethod
    def _writing(self, *categories: str) -> AbstractContextManager[None]:
        """Let nobody else write documents of these categories."""

    @abstractmethod
    def _names_like(self, key: Key) -> Iterable[str]:
        """Return the names that the key's name may mean, with or without a date."""

    @abstractmethod
    def _archived_like(self, category: str, name: str) -> Iterable[str]:
        """Return the names in the archive that begin so; there may be others among them."""

    @abstractmethod
    def _read(self, key: Key) -> Kept:
        """Read a document. Raises MemoryDocumentNotFoundError, MemoryDocumentInvalidError."""

    @abstractmethod
    def _write(self, document: Kept, *, is_new: bool, now: datetime, action: str = "save") -> None:
        """Create or replace a document. Call it within ``_writing``. ``action``: for the audit."""

    @abstractmethod
    def _archive(self, key: Key) -> Key:
        """Archive a document, with a number if its name is taken there; return its new place."""


# Copy the documents of one store into another.


AT_ONCE = 100
# The maximum that is held in memory at once, whatever the size of the documents.
MAX_IN_MEMORY = 4 * 1024 * 1024
# Further entries are only counted.
MAX_LISTED = 1_000


@dataclass
class TransferReport:
    """The result of a transfer. ``conflicts`` and ``broken`` are [{path, detail}].

    Both kinds were left unchanged.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: int = 0
    conflicts: list[dict[str, str]] = field(default_factory=list)
    broken: list[dict[str, str]] = field(default_factory=list)

    def add(self, put: Put) -> None:
        if put.outcome == CONFLICT:
            self._refuse(self.conflicts, put.key.path, put.detail)
        else:
            # Each other outcome is the name of its count.
            setattr(self, put.outcome, getattr(self, put.outcome) + 1)

    def add_broken(self, broken: Broken) -> None:
        self._refuse(self.broken, broken.path, strict_json.render_problem(broken.problems))

    def _refuse(self, listed: list[dict[str, str]], path: str, detail: str) -> None:
        self.refused += 1
        if len(listed) < MAX_LISTED:
            listed.append({"path": path, "detail": detail})

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


def documents_transfer(
    *,
    source: MemoryDocumentStore,
    target: MemoryDocumentStore,
    replace: bool = False,
    progress: Progress = no_progress,
) -> TransferReport:
    """Copy all documents, including archived ones, each to its place.

    Documents that exist already stay unchanged, so that the transfer can be interrupted and
    repeated. Another text under the same name is a conflict, unless ``replace`` is set. Raises
    MemoryDocumentError; documents that were copied before stay.
    """
    report = TransferReport()
    total, done = source.count(), 0
    for batch in _batches(source):
        kept = [each for each in batch if isinstance(each, Kept)]
        for each in batch:
            if isinstance(each, Broken):
                report.add_broken(each)
        for put in target.put(kept, replace=replace):
            report.add(put)
        done += len(batch)
        progress(done, max(total, done))
    return report


def _batches(source: MemoryDocumentStore) -> Iterator[list[Kept | Broken]]:
    batch: list[Kept | Broken] = []
    held = 0
    for each in source.walk():
        batch.append(each)
        held += len(each.envelope.text) if isinstance(each, Kept) else 0
        if len(batch) == AT_ONCE or held > MAX_IN_MEMORY:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
