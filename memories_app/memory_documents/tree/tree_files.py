"""Files of one folder, addressed by the folder's descriptor.

Symbolic links are never followed, and a file appears complete or not at all.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from memories_app.memory_document_format.facade import (
    MAX_BYTES,
    SUFFIX,
    MemoryDocumentInvalidError,
    MemoryDocumentNotFoundError,
    Problem,
    envelope_read,
    name_refused,
)
from memories_app.memory_documents.store_protocol import Broken, Kept, Key
from memories_app.memory_documents.tree import tree_files

FILE_MODE = 0o600
# The writer holds the tree's lock, so one temporary name is enough. The next write replaces
# what a killed program left under it.
_BESIDE = ".saving"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NoFileError(OSError):
    """The name belongs to something that is no file: a link, a folder, a pipe."""


def names_in(folder: int) -> list[str]:
    """Return the sorted names of the documents there; only ``*.json`` files count."""
    files = os.listdir(folder)
    names = (file.removesuffix(SUFFIX) for file in files if file.endswith(SUFFIX))
    return sorted(name for name in names if not name.startswith("."))


def read(folder: int, name: str) -> bytes:
    """Return the content of a document's file; of a file above the limit only its beginning.

    Raises FileNotFoundError, NoFileError, OSError.
    """
    try:
        descriptor = os.open(name + SUFFIX, _READ, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise NoFileError(error.errno, "is a link or a pipe, and no file") from error
        raise
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NoFileError(errno.EINVAL, "is no file")
        return file.read(MAX_BYTES + 1)


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


# Read one document of a tree: return the document or the problems of the file.


def kept_read(folder: int, key: Key) -> Kept:
    """Read a document. Raises MemoryDocumentNotFoundError, MemoryDocumentInvalidError."""
    why = name_refused(key.name)
    if why:
        raise _unreadable(key, f"its name {why}")
    try:
        raw = tree_files.read(folder, key.name)
    except FileNotFoundError:
        raise MemoryDocumentNotFoundError(f"There is no {key.path}.") from None
    except OSError as error:
        raise _unreadable(key, f"can't be read: {error.strerror}") from error
    return Kept(key, envelope_read(raw, category=key.category, place=key.path))


def _unreadable(key: Key, why: str) -> MemoryDocumentInvalidError:
    return MemoryDocumentInvalidError([Problem("", why)], place=key.path)


def kept_or_broken(folder: int, key: Key) -> Kept | Broken | None:
    """Read a document; None if it was removed meanwhile."""
    try:
        return kept_read(folder, key)
    except MemoryDocumentNotFoundError:
        return None
    except MemoryDocumentInvalidError as error:
        return Broken(key.path, tuple(error.problems))


def kept_if_there(folder: int, key: Key) -> Kept | None:
    """Read a document; None if there is none. Raises MemoryDocumentInvalidError."""
    try:
        return kept_read(folder, key)
    except MemoryDocumentNotFoundError:
        return None
