"""The folders and files of a tree, opened so that no path leads outside.

The root is the folder that the user named. Below it every folder is opened by its descriptor
and no symbolic link is followed, so neither a name nor a link reaches another place. A file
appears complete or not at all.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from memories_app.memory_document_format import strict_json
from memories_app.memory_document_format.envelope import envelope_read
from memories_app.memory_document_format.names import CATEGORIES, SUFFIX, name_refused
from memories_app.memory_documents.store import ARCHIVE, Kept, Key
from memoryproject.foundation.process.storage import FOLDER_MODE, folder_make

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
                    raise strict_json.MemoryDocumentStoreError(
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
            raise strict_json.MemoryDocumentStoreError(
                f"There is no folder {self.root}. Check its name; a save makes it."
            ) from None
        except OSError as error:
            raise self.unusable("can't be used", error) from error
        try:
            yield root
        finally:
            os.close(root)

    def unusable(
        self, what: str, error: OSError, below: str = ""
    ) -> strict_json.MemoryDocumentStoreError:
        """Return the error for people: what failed, where and why."""
        path = self.root / below
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            return strict_json.MemoryDocumentStoreError(f"{path} {_ASIDE}.")
        return strict_json.MemoryDocumentStoreError(f"{path} {what}: {error.strerror}.")


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


# Files of one folder, addressed by the folder's descriptor.

FILE_MODE = 0o600
# The writer holds the tree's lock, so one temporary name is enough. The next write replaces
# what a killed program left under it.
_BESIDE = ".saving"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def names_in(folder: int) -> list[str]:
    """Return the sorted names of the documents there; only ``*.json`` files count."""
    files = os.listdir(folder)
    names = (file.removesuffix(SUFFIX) for file in files if file.endswith(SUFFIX))
    return sorted(name for name in names if not name.startswith("."))


def _read(folder: int, name: str) -> bytes:
    """Return the content of a document's file; of a file above the limit only its beginning.

    Raises OSError, also if it is a link, a folder or a pipe.
    """
    try:
        descriptor = os.open(name + SUFFIX, _READ, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise OSError(error.errno, "is a link or a pipe, and no file") from error
        raise
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "is no file")
        return file.read(strict_json.MAX_BYTES + 1)


def is_there(folder: int, name: str) -> bool:
    """Return whether anything has the document's name."""
    try:
        os.stat(name + SUFFIX, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def write(folder: int, name: str, text: str) -> None:
    """Write a document atomically; call ``sync`` after the last one.

    Raises OSError; then the previous file still exists.
    """
    with suppress(FileNotFoundError):
        os.unlink(_BESIDE, dir_fd=folder)
    descriptor = os.open(_BESIDE, _WRITE, FILE_MODE, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(descriptor)
        os.rename(_BESIDE, name + SUFFIX, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(_BESIDE, dir_fd=folder)
        raise


def sync(folder: int) -> None:
    """Make created, renamed and deleted names survive a power cut."""
    os.fsync(folder)


def move(source: int, name: str, target: int, new_name: str) -> None:
    """Move to a name that isn't taken there. The caller checks that first, within the lock."""
    os.rename(name + SUFFIX, new_name + SUFFIX, src_dir_fd=source, dst_dir_fd=target)
    os.fsync(target)
    os.fsync(source)


def remove(folder: int, name: str) -> None:
    os.unlink(name + SUFFIX, dir_fd=folder)


def is_spelled_so(folder: int, name: str) -> bool:
    """Return whether the file is spelled exactly so.

    On a case-insensitive file system another spelling leads to the same file.
    """
    file = name + SUFFIX
    own = os.stat(file, dir_fd=folder, follow_symlinks=False)
    try:
        other = os.stat(file.swapcase(), dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return True
    return (own.st_dev, own.st_ino) != (other.st_dev, other.st_ino) or file in os.listdir(folder)


def kept_read(folder: int, key: Key) -> Kept:
    """Read a document. Raises MemoryDocumentNotFoundError, MemoryDocumentInvalidError."""
    why = name_refused(key.name)
    if why:
        raise _unreadable(key, f"its name {why}")
    try:
        raw = _read(folder, key.name)
    except FileNotFoundError:
        raise key.not_found() from None
    except OSError as error:
        raise _unreadable(key, f"can't be read: {error.strerror}") from error
    return Kept(key, envelope_read(raw, category=key.category, place=key.path))


def _unreadable(key: Key, why: str) -> strict_json.MemoryDocumentInvalidError:
    return strict_json.MemoryDocumentInvalidError([strict_json.Problem("", why)], place=key.path)
