"""Memory documents in a directory tree that any other program may read and write.

The root is the folder that the user named. Below it no symbolic link is followed, so that neither a
name nor a link reaches another place. A file appears complete or not at all.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

from memories_app.memory_document_format.envelope import envelope_read
from memories_app.memory_document_format.names import (
    CATEGORIES,
    CONTEXT,
    SUFFIX,
    name_refused,
    numbered,
    numbers_of,
)
from memories_app.memory_document_format.strict_json import (
    MAX_BYTES,
    MemoryDocumentInvalidError,
    MemoryDocumentNotFoundError,
    MemoryDocumentStoreError,
    Problem,
)
from memories_app.memory_documents.store import (
    ARCHIVE,
    CONFLICT,
    PLACES,
    Broken,
    Filter,
    Found,
    Kept,
    Key,
    MemoryDocumentStore,
    Progress,
    Put,
    Removed,
    no_progress,
    put_outcome,
)
from memoryproject.foundation.process.narrowing import present
from memoryproject.foundation.process.storage import file_make, folder_make, folder_sync

LOCK_SECONDS = 30.0
_ASIDE = "is no folder, or a symbolic link: put a folder there"
# The writer holds the tree's lock, so one temporary name is enough. The next write replaces
# what a killed program left under it.
_BESIDE = ".saving"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def _now() -> datetime:
    return datetime.now(timezone.utc)


class TreeStore(MemoryDocumentStore):
    """A MemoryDocumentStore below ``root``. The first write creates the root.

    ``lock_seconds``: how long to wait for another writer.
    """

    def __init__(
        self, root: Path, *, now: Callable[[], datetime] = _now, lock_seconds: float = LOCK_SECONDS
    ) -> None:
        super().__init__(now)
        self._root = root
        self._lock_seconds = lock_seconds

    def find(self, wanted: Filter) -> Iterator[Found | Broken]:
        for category in wanted.categories:
            for one in self._all(category, wanted):
                if isinstance(one, Broken):
                    yield one
                elif wanted.since is None or one.envelope.changed >= wanted.since:
                    yield Found(one.key, one.envelope)

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
        names = self._names(category)
        for done, name in enumerate(names, start=1):
            one = self._kept_or_broken(Key(category, name))
            if isinstance(one, Broken):
                broken.append(one)
            elif (
                one and one.envelope.changed < before and (dry_run or self._remove(one.key, before))
            ):
                removed.append(name)
            progress(done, len(names))
        return Removed(tuple(removed), tuple(broken))

    def count(self) -> int:
        return sum(len(self._names(category, archived=archived)) for category, archived in PLACES)

    def walk(self) -> Iterator[Kept | Broken]:
        for category, archived in PLACES:
            yield from self._all(category, Filter(archived=archived))

    def put(self, documents: Sequence[Kept], *, replace: bool = False) -> list[Put]:
        self._make()
        with self._locked():
            try:
                return [self._put(each, replace=replace) for each in documents]
            finally:
                # Once for all documents of a folder, also for those before an error.
                for folder in {self._folder_of(each.key) for each in documents}:
                    folder_sync(present(folder))

    def _put(self, document: Kept, *, replace: bool) -> Put:
        key = document.key
        there = self._kept_or_broken(key)
        if isinstance(there, Broken):
            return Put(key, CONFLICT, f"what is there is broken: {there.problems[0]}")
        put = put_outcome(
            document,
            there.envelope.sha256 if there else None,
            replace=replace,
            is_archived=lambda: self._is_archived_by_now(document),
        )
        if put.is_written:
            _write_file(self._file(key), document.envelope.text)
        return put

    def _is_archived_by_now(self, document: Kept) -> bool:
        category, name = document.key.category, document.key.name
        if not os.path.lexists(self._file(Key(category, name, archived=True))):
            return False
        return any(
            isinstance(one, Kept) and one.envelope.text == document.envelope.text
            for each in numbers_of(name, self._names(category, archived=True))
            for one in [self._kept_or_broken(Key(category, each, archived=True))]
        )

    def _all(self, category: str, wanted: Filter) -> Iterator[Kept | Broken]:
        for name in self._names(category, archived=wanted.archived):
            if wanted.fits_name(category, name):
                one = self._kept_or_broken(Key(category, name, wanted.archived))
                if one is not None:
                    yield one

    def _names(self, category: str, *, archived: bool = False) -> list[str]:
        """Return the sorted names of the documents; only ``*.json`` files count."""
        folder = self._folder(category, archived=archived)
        try:
            files = os.listdir(folder) if folder is not None else []
        except OSError as error:
            raise self._unusable("can't be used", error, folder) from error
        names = (file.removesuffix(SUFFIX) for file in files if file.endswith(SUFFIX))
        return sorted(name for name in names if not name.startswith("."))

    def _names_like(self, key: Key) -> Iterable[str]:
        if key.category == CONTEXT:
            return self._names(key.category, archived=key.archived)
        folder = self._folder_of(key)
        is_there = folder is not None and os.path.lexists(folder / f"{key.name}{SUFFIX}")
        return [key.name] if is_there else []

    def _read(self, key: Key) -> Kept:
        folder = self._folder_of(key)
        if folder is None:
            raise key.not_found()
        if why := name_refused(key.name):
            raise _unreadable(key, f"its name {why}")
        try:
            raw = _read_file(folder / f"{key.name}{SUFFIX}")
        except FileNotFoundError:
            raise key.not_found() from None
        except OSError as error:
            raise _unreadable(key, f"can't be read: {error.strerror}") from error
        return Kept(key, envelope_read(raw, category=key.category, place=key.path))

    def _kept_or_broken(self, key: Key) -> Kept | Broken | None:
        """Read a document; None if there is none."""
        try:
            return self._read(key)
        except MemoryDocumentNotFoundError:
            return None
        except MemoryDocumentInvalidError as error:
            return Broken(key.path, tuple(error.problems))

    def _existing(self, key: Key) -> Kept | None:
        old = super()._existing(key)
        if old is not None and not _is_spelled_so(self._file(key)):
            raise MemoryDocumentStoreError(
                f"{key.path} is there in other upper and lower case, which this file system "
                "takes for the same. Choose another identifier."
            )
        return old

    def _write(self, document: Kept, *, is_new: bool, now: datetime) -> None:
        file = self._file(document.key)
        _write_file(file, document.envelope.text)
        folder_sync(file.parent)

    def _archive(self, key: Key) -> Key:
        taken = self._names(key.category, archived=True)
        archived = Key(key.category, numbered(key.name, taken), archived=True)
        old, new = self._file(key), self._file(archived)
        # The caller holds the lock: nobody else takes the name.
        old.rename(new)
        folder_sync(new.parent)
        folder_sync(old.parent)
        return archived

    def _remove(self, key: Key, before: datetime) -> bool:
        """Remove the document unless it was saved again meanwhile."""
        with self._locked():
            one = self._kept_or_broken(key)
            if not isinstance(one, Kept) or one.envelope.changed >= before:
                return False
            self._file(key).unlink()
            return True

    @contextmanager
    def _writing(self, category: str) -> Iterator[None]:
        self._make()
        with self._locked():
            yield

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let no other program of this kind write.

        The lock is on the root itself, so that it needs no file; closing it ends the lock.
        """
        self._check_root()
        try:
            root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self._lock(root)
                yield
            finally:
                os.close(root)
        except OSError as error:
            raise self._unusable("can't be written to", error) from error

    def _lock(self, root: int) -> None:
        until = time.monotonic() + self._lock_seconds
        while True:
            try:
                return fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    raise MemoryDocumentStoreError(
                        f"{self._root} is being written to by another program. Try again."
                    ) from None
                time.sleep(0.01)

    # The folders of the tree.

    def _make(self) -> None:
        """Create the missing folders of the tree. Existing folders stay unchanged."""
        try:
            folder_make(self._root)
            self._check_root()
            for name in (*CATEGORIES, ARCHIVE):
                folder_make(self._root / name)
            archive = present(self._below(ARCHIVE))
            for category in CATEGORIES:
                folder_make(archive / category)
            folder_sync(self._root)
            folder_sync(archive)
        except OSError as error:
            raise self._unusable("can't be made", error) from error

    def _check_root(self) -> None:
        if not self._root.exists():
            raise MemoryDocumentStoreError(
                f"There is no folder {self._root}. Check its name; a save makes it."
            )
        if not self._root.is_dir():
            raise MemoryDocumentStoreError(f"{self._root} {_ASIDE}.")

    def _below(self, *parts: str) -> Path | None:
        """Return a folder of the tree; None if it doesn't exist yet.

        Raises MemoryDocumentStoreError, also if it is a link.
        """
        self._check_root()
        path = self._root
        for part in parts:
            path /= part
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:
                return None
            except OSError as error:
                raise self._unusable("can't be used", error, path) from error
            if not stat.S_ISDIR(mode):
                raise MemoryDocumentStoreError(f"{path} {_ASIDE}.")
        return path

    def _folder(self, category: str, *, archived: bool = False) -> Path | None:
        return self._below(ARCHIVE, category) if archived else self._below(category)

    def _folder_of(self, key: Key) -> Path | None:
        return self._folder(key.category, archived=key.archived)

    def _file(self, key: Key) -> Path:
        """Return the file of a document, whose folder exists."""
        return present(self._folder_of(key)) / f"{key.name}{SUFFIX}"

    def _unusable(
        self, what: str, error: OSError, path: Path | None = None
    ) -> MemoryDocumentStoreError:
        """Return the error for people: what failed, where and why."""
        return MemoryDocumentStoreError(f"{path or self._root} {what}: {error.strerror}.")


def _read_file(path: Path) -> bytes:
    """Return the content of a document's file; of a file above the limit only its beginning.

    Raises OSError, also if it is a link, a folder or a pipe.
    """
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise OSError(error.errno, "is a link or a pipe, and no file") from error
        raise
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "is no file")
        return file.read(MAX_BYTES + 1)


def _write_file(path: Path, text: str) -> None:
    """Write a document atomically; sync its folder after the last one.

    Raises OSError; then the previous file still exists.
    """
    beside = path.with_name(_BESIDE)
    beside.unlink(missing_ok=True)
    try:
        file_make(beside, text.encode())
        beside.rename(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def _is_spelled_so(path: Path) -> bool:
    """Return whether the file is spelled exactly so.

    On a case-insensitive file system another spelling leads to the same file.
    """
    other = path.with_name(path.name.swapcase())
    if not os.path.lexists(other):
        return True
    own = os.path.samestat(path.lstat(), other.lstat())
    return not own or path.name in os.listdir(path.parent)


def _unreadable(key: Key, why: str) -> MemoryDocumentInvalidError:
    return MemoryDocumentInvalidError([Problem("", why)], place=key.path)
