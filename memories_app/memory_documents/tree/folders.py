"""The folders of a tree, opened so that no path leads outside.

The root is the folder that the user named. Below it every folder is opened by its descriptor
and no symbolic link is followed, so neither a name nor a link reaches another place.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from memories_app.memory_document_format.facade import CATEGORIES, MemoryDocumentStoreError
from memories_app.memory_documents.store_protocol import ARCHIVE
from memoryproject.foundation.process.private_folders import FOLDER_MODE, folder_make

LOCK_SECONDS = 30.0
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ASIDE = "is no folder, or a symbolic link: put a folder there"


class Folders:
    """The folders below a root. ``lock_seconds``: how long to wait for another writer."""

    def __init__(self, root: Path, *, lock_seconds: float = LOCK_SECONDS) -> None:
        self.root = root
        self._lock_seconds = lock_seconds

    def make(self) -> None:
        """Create the missing folders of the tree. Existing folders stay unchanged."""
        try:
            folder_make(self.root)
            with self._root() as root:
                _make(root, [*CATEGORIES, ARCHIVE])
                with _inside(root, ARCHIVE) as archive:
                    _make(archive, CATEGORIES)
        except OSError as error:
            raise self.unusable("can't be made", error) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock against other writers of this class.

        The lock is on the root itself, so that it needs no file. Raises MemoryDocumentStoreError.
        """
        with self._root() as root:
            self._lock(root)
            # Closing the descriptor releases the lock.
            yield

    def _lock(self, root: int) -> None:
        until = time.monotonic() + self._lock_seconds
        while True:
            try:
                fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    raise MemoryDocumentStoreError(
                        f"{self.root} is being written to by another program. Try again."
                    ) from None
                time.sleep(0.01)
            except OSError as error:
                raise self.unusable("can't be locked", error) from error

    @contextmanager
    def folder(self, category: str, *, archived: bool = False) -> Iterator[int | None]:
        """Yield the descriptor of a category's folder; None if it doesn't exist yet.

        Raises MemoryDocumentStoreError.
        """
        parts = [ARCHIVE, category] if archived else [category]
        with ExitStack() as opened:
            outer = opened.enter_context(self._root())
            place: int | None = None
            try:
                for part in parts:
                    outer = place = opened.enter_context(_inside(outer, part))
            except FileNotFoundError:
                place = None
            except OSError as error:
                raise self.unusable("can't be used", error, "/".join(parts)) from error
            yield place

    @contextmanager
    def _root(self) -> Iterator[int]:
        try:
            root = os.open(self.root, _OPEN)
        except FileNotFoundError:
            raise MemoryDocumentStoreError(
                f"There is no folder {self.root}. Check its name; a save makes it."
            ) from None
        except OSError as error:
            raise self.unusable("can't be used", error) from error
        try:
            yield root
        finally:
            os.close(root)

    def unusable(self, what: str, error: OSError, below: str = "") -> MemoryDocumentStoreError:
        """Return the error for people: what failed, where and why."""
        path = self.root / below
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            return MemoryDocumentStoreError(f"{path} {_ASIDE}.")
        return MemoryDocumentStoreError(f"{path} {what}: {error.strerror}.")


@contextmanager
def _inside(parent: int, name: str) -> Iterator[int]:
    descriptor = os.open(name, _OPEN | os.O_NOFOLLOW, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _make(parent: int, names: Iterable[str]) -> None:
    for name in names:
        with suppress(FileExistsError):
            os.mkdir(name, FOLDER_MODE, dir_fd=parent)
    os.fsync(parent)
