"""Read one document of a tree: return the document or the problems of the file."""

from __future__ import annotations

from memories_app.memory_document_format.facade import (
    MemoryDocumentInvalidError,
    MemoryDocumentNotFoundError,
    Problem,
    envelope_read,
    name_refused,
)
from memories_app.memory_documents.store_protocol import Broken, Kept, Key
from memories_app.memory_documents.tree import tree_files


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
