"""Store documents in a tree, each at its own place."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType

from memories_app.memory_document_format.facade import MemoryDocumentInvalidError, numbers_of
from memories_app.memory_documents.store_protocol import (
    ANOTHER_TEXT,
    CONFLICT,
    CREATED,
    UNCHANGED,
    UPDATED,
    Kept,
    Key,
    Put,
)
from memories_app.memory_documents.tree import tree_files
from memories_app.memory_documents.tree.folders import Folders
from memories_app.memory_documents.tree.read_tree import kept_if_there, kept_or_broken
from memoryproject.foundation.process.narrowing import present


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
