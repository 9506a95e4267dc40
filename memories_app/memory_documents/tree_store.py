"""Memory documents in a directory tree that any other program may read and write."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

from memories_app.memory_document_format.names import CONTEXT, numbered
from memories_app.memory_document_format.strict_json import MemoryDocumentStoreError
from memories_app.memory_documents import store as documents, tree_files
from memories_app.memory_documents.tree_files import LOCK_SECONDS, Folders, kept_read
from memoryproject.foundation.process.narrowing import present


def _now() -> datetime:
    return datetime.now(timezone.utc)


class TreeStore(documents.MemoryDocumentStore):
    """A MemoryDocumentStore below ``root``. The first write creates the root."""

    def __init__(
        self, root: Path, *, now: Callable[[], datetime] = _now, lock_seconds: float = LOCK_SECONDS
    ) -> None:
        super().__init__(now)
        self._folders = Folders(root, lock_seconds=lock_seconds)

    def find(self, wanted: documents.Filter) -> Iterator[documents.Found | documents.Broken]:
        for category in wanted.categories:
            for one in self._all(category, wanted):
                if isinstance(one, documents.Broken):
                    yield one
                elif wanted.since is None or one.envelope.changed >= wanted.since:
                    yield documents.Found(one.key, one.envelope)

    def _cleanup(
        self, category: str, before: datetime, *, dry_run: bool, progress: documents.Progress
    ) -> documents.Removed:
        removed, broken = [], []
        names = self._names(category)
        for done, name in enumerate(names, start=1):
            one = self._kept_or_broken(documents.Key(category, name))
            if isinstance(one, documents.Broken):
                broken.append(one)
            elif (
                one and one.envelope.changed < before and (dry_run or self._remove(one.key, before))
            ):
                removed.append(name)
            progress(done, len(names))
        return documents.Removed(tuple(removed), tuple(broken))

    def count(self) -> int:
        return sum(
            len(self._names(category, archived=archived)) for category, archived in documents.PLACES
        )

    def walk(self) -> Iterator[documents.Kept | documents.Broken]:
        for category, archived in documents.PLACES:
            yield from self._all(category, documents.Filter(archived=archived))

    def _all(
        self, category: str, wanted: documents.Filter
    ) -> Iterator[documents.Kept | documents.Broken]:
        for name in self._names(category, archived=wanted.archived):
            if wanted.fits_name(category, name):
                one = self._kept_or_broken(documents.Key(category, name, wanted.archived))
                if one is not None:
                    yield one

    def _names(self, category: str, *, archived: bool = False) -> list[str]:
        with self._folders.folder(category, archived=archived) as folder:
            return tree_files.names_in(folder) if folder is not None else []

    def _names_like(self, key: documents.Key) -> Iterable[str]:
        if key.category == CONTEXT:
            return self._names(key.category, archived=key.archived)
        with self._folders.folder(key.category, archived=key.archived) as folder:
            is_there = folder is not None and tree_files.is_there(folder, key.name)
            return [key.name] if is_there else []

    def _archived_like(self, category: str, name: str) -> Iterable[str]:
        return self._names(category, archived=True)

    def _read(self, key: documents.Key) -> documents.Kept:
        with self._folders.folder(key.category, archived=key.archived) as folder:
            if folder is None:
                raise key.not_found()
            return kept_read(folder, key)

    def _existing(self, key: documents.Key) -> documents.Kept | None:
        old = super()._existing(key)
        if old is not None:
            with self._folders.folder(key.category) as folder:
                is_spelled_so = tree_files.is_spelled_so(present(folder), key.name)
            if not is_spelled_so:
                raise MemoryDocumentStoreError(
                    f"{key.path} is there in other upper and lower case, which this file system "
                    "takes for the same. Choose another identifier."
                )
        return old

    def _write(
        self, document: documents.Kept, *, is_new: bool, now: datetime, action: str = "save"
    ) -> None:
        key = document.key
        with self._folders.folder(key.category, archived=key.archived) as opened:
            folder = present(opened)
            tree_files.write(folder, key.name, document.envelope.text)
            tree_files.sync(folder)

    def _archive(self, key: documents.Key) -> documents.Key:
        with (
            self._folders.folder(key.category) as opened,
            self._folders.folder(key.category, archived=True) as opened_archive,
        ):
            archive = present(opened_archive)
            taken = tree_files.names_in(archive) if tree_files.is_there(archive, key.name) else []
            name = numbered(key.name, taken)
            tree_files.move(present(opened), key.name, archive, name)
        return documents.Key(key.category, name, archived=True)

    def _remove(self, key: documents.Key, before: datetime) -> bool:
        """Remove the document unless it was saved again meanwhile."""
        with self._locked():
            one = self._kept_or_broken(key)
            if not isinstance(one, documents.Kept) or one.envelope.changed >= before:
                return False
            with self._folders.folder(key.category) as folder:
                tree_files.remove(present(folder), key.name)
            return True

    @contextmanager
    def _writing(self, *categories: str) -> Iterator[None]:
        self._folders.make()
        with self._locked():
            yield

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let no other program of this kind write."""
        try:
            with self._folders.locked():
                yield
        except OSError as error:
            raise self._folders.unusable("can't be written to", error) from error
