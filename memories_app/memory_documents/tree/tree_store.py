"""Memory documents in a directory tree that any other program may read and write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

from memories_app.memory_document_format.facade import (
    CATEGORIES,
    CONTEXT,
    MemoryDocumentInvalidError,
    MemoryDocumentNotFoundError,
    MemoryDocumentStoreError,
    envelope_saved,
    identifier_of,
    identifier_read,
    name_for,
    newest,
    numbered,
    numbers_of,
)
from memories_app.memory_documents.store_protocol import (
    ANOTHER_TEXT,
    CONFLICT,
    CREATED,
    UNCHANGED,
    UPDATED,
    Broken,
    Filter,
    Found,
    Kept,
    Key,
    Progress,
    Put,
    Removed,
    Saved,
    no_progress,
)
from memories_app.memory_documents.tree import tree_files
from memories_app.memory_documents.tree.folders import LOCK_SECONDS, Folders
from memories_app.memory_documents.tree.tree_files import kept_if_there, kept_or_broken, kept_read
from memoryproject.foundation.process.narrowing import present


def _now() -> datetime:
    return datetime.now(timezone.utc)


class TreeStore:
    """A MemoryDocumentStore below ``root``. The first write creates the root."""

    def __init__(
        self,
        root: Path,
        *,
        now: Callable[[], datetime] = _now,
        lock_seconds: float = LOCK_SECONDS,
    ) -> None:
        self._folders = Folders(root, lock_seconds=lock_seconds)
        self._now = now

    def save(
        self,
        *,
        category: str,
        identifier: str,
        content: Mapping[str, Any],
        session_id: str | None = None,
    ) -> Saved:
        now = self._now()
        key = Key(category, name_for(category, identifier, now.date()))
        values: dict[str, Any] = {
            "category": category,
            "summary": identifier_of(category, key.name),
            "content": content,
            "session_id": session_id,
            "now": now,
        }
        fresh = envelope_saved(None, **values)
        self._folders.make()
        with self._writing(category) as folder:
            old = self._old(folder, key)
            new = fresh if old is None else envelope_saved(old.envelope, **values)
            outcome = CREATED if old is None else UPDATED
            if old is not None and new is old.envelope:
                outcome = UNCHANGED
            else:
                tree_files.write(folder, key.name, new.text)
                tree_files.sync(folder)
            archived_as = self._archive(folder, key) if new.is_completed else None
        return Saved(key, outcome, new, archived_as)

    def load(self, *, category: str, identifier: str, archived: bool = False) -> Kept:
        with self._folders.folder(category, archived=archived) as folder:
            key = self._meant(folder, category, identifier, archived=archived)
            return kept_read(present(folder), key)

    def find(self, wanted: Filter) -> Iterator[Found | Broken]:
        for category in wanted.categories:
            for one in self._all(category, wanted):
                if isinstance(one, Broken):
                    yield one
                elif wanted.fits_time(one.envelope.changed):
                    yield Found.of(one)

    def cleanup(
        self,
        *,
        category: str,
        older_than: timedelta,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Removed:
        before = self._now() - older_than
        removed, broken = [], []
        with self._folders.folder(category) as folder:
            names = tree_files.names_in(folder) if folder is not None else []
            for done, name in enumerate(names, start=1):
                one = kept_or_broken(present(folder), Key(category, name))
                if isinstance(one, Broken):
                    broken.append(one)
                elif (
                    one
                    and one.envelope.changed < before
                    and (dry_run or self._remove(one.key, before))
                ):
                    removed.append(name)
                progress(done, len(names))
        return Removed(tuple(removed), tuple(broken))

    def archive(self, *, category: str, identifier: str) -> Key:
        # The target folder may be missing.
        with self._folders.folder(category) as folder:
            self._meant(folder, category, identifier)
        self._folders.make()
        with self._writing(category) as folder:
            key = self._meant(folder, category, identifier)
            kept_read(folder, key)
            return self._archive(folder, key)

    def count(self) -> int:
        total = 0
        for category, archived in _places():
            with self._folders.folder(category, archived=archived) as folder:
                total += len(tree_files.names_in(folder)) if folder is not None else 0
        return total

    def walk(self) -> Iterator[Kept | Broken]:
        for category, archived in _places():
            yield from self._all(category, Filter(archived=archived))

    def put(self, documents: Sequence[Kept], *, replace: bool = False) -> list[Put]:
        self._folders.make()
        with (
            self._errors("can't be written to"),
            self._folders.locked(),
            Putting(self._folders, replace=replace) as putting,
        ):
            return [putting.put(each) for each in documents]

    def _all(self, category: str, wanted: Filter) -> Iterator[Kept | Broken]:
        with self._folders.folder(category, archived=wanted.archived) as folder:
            for name in tree_files.names_in(folder) if folder is not None else []:
                if wanted.fits_name(category, name):
                    one = kept_or_broken(present(folder), Key(category, name, wanted.archived))
                    if one is not None:
                        yield one

    def _meant(
        self, folder: int | None, category: str, identifier: str, *, archived: bool = False
    ) -> Key:
        """Return the document that an identifier means. Raises MemoryDocumentNotFoundError."""
        identifier = identifier_read(identifier)
        if folder is None:
            name = None
        elif category == CONTEXT:
            name = newest(category, identifier, tree_files.names_in(folder))
        else:
            name = identifier if tree_files.is_there(folder, identifier) else None
        if name is None:
            raise MemoryDocumentNotFoundError(
                f"There is no {Key(category, identifier, archived).path}."
            )
        return Key(category, name, archived)

    def _old(self, folder: int, key: Key) -> Kept | None:
        """Return the existing document, or None.

        Raises MemoryDocumentInvalidError, MemoryDocumentStoreError.
        """
        old = kept_if_there(folder, key)
        if old is not None and not tree_files.is_spelled_so(folder, key.name):
            raise MemoryDocumentStoreError(
                f"{key.path} is there in other upper and lower case, which this file system "
                "takes for the same. Choose another identifier."
            )
        return old

    def _archive(self, folder: int, key: Key) -> Key:
        with self._folders.folder(key.category, archived=True) as opened:
            archive = present(opened)
            taken = tree_files.names_in(archive) if tree_files.is_there(archive, key.name) else []
            name = numbered(key.name, taken)
            tree_files.move(folder, key.name, archive, name)
        return Key(key.category, name, archived=True)

    def _remove(self, key: Key, before: datetime) -> bool:
        """Remove the document unless it was saved again meanwhile."""
        with self._writing(key.category) as folder:
            one = kept_or_broken(folder, key)
            if not isinstance(one, Kept) or one.envelope.changed >= before:
                return False
            tree_files.remove(folder, key.name)
            return True

    @contextmanager
    def _writing(self, category: str) -> Iterator[int]:
        """Yield the folder of a category, locked for this program."""
        with (
            self._errors("can't be written to"),
            self._folders.locked(),
            self._folders.folder(category) as folder,
        ):
            if folder is None:
                raise MemoryDocumentStoreError(f"The folder {category} is gone. Try again.")
            yield folder

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._folders.unusable(what, error) from error


def _places() -> list[tuple[str, bool]]:
    return [(category, archived) for archived in (False, True) for category in CATEGORIES]


# Store documents in a tree, each at its own place.


class Putting:
    """Store several documents within the tree's lock.

    It keeps the folders open that it writes to, and syncs all names to disk at the end.
    """

    def __init__(self, folders: Folders, *, replace: bool) -> None:
        self._folders = folders
        self._replace = replace
        self._opened = ExitStack()
        self._open: dict[tuple[str, bool], int] = {}

    def put(self, document: Kept) -> Put:
        """Store one document. Raises OSError, MemoryDocumentStoreError."""
        key, text = document.key, document.envelope.text
        folder = self._folder(key.category, key.archived)
        try:
            there = kept_if_there(folder, key)
        except MemoryDocumentInvalidError as error:
            return Put(key, CONFLICT, f"what is there is broken: {error.problems[0]}")
        if there is None and self._is_archived_by_now(document):
            return Put(key, UNCHANGED)
        if there is not None and there.envelope.text == text:
            return Put(key, UNCHANGED)
        if there is not None and not self._replace:
            return Put(key, CONFLICT, ANOTHER_TEXT)
        tree_files.write(folder, key.name, text)
        return Put(key, CREATED if there is None else UPDATED)

    def _is_archived_by_now(self, document: Kept) -> bool:
        key = document.key
        if key.archived:
            return False
        archive = self._folder(key.category, archived=True)
        if not tree_files.is_there(archive, key.name):
            return False
        for name in numbers_of(key.name, tree_files.names_in(archive)):
            one = kept_or_broken(archive, Key(key.category, name, archived=True))
            if isinstance(one, Kept) and one.envelope.text == document.envelope.text:
                return True
        return False

    def _folder(self, category: str, archived: bool) -> int:
        place = (category, archived)
        if place not in self._open:
            folder = self._folders.folder(category, archived=archived)
            self._open[place] = present(self._opened.enter_context(folder))
        return self._open[place]

    def __enter__(self) -> Putting:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._opened:
            for folder in self._open.values():
                tree_files.sync(folder)
