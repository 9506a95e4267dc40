"""Memory documents in a directory tree that any other program may read and write."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

from memories_app.memory_document_format import strict_json
from memories_app.memory_document_format.names import CONTEXT, numbered, numbers_of
from memories_app.memory_documents import store, tree_files
from memories_app.memory_documents.tree_files import LOCK_SECONDS, Folders, kept_read
from memoryproject.foundation.process.narrowing import present


def _now() -> datetime:
    return datetime.now(timezone.utc)


class TreeStore(store.MemoryDocumentStore):
    """A MemoryDocumentStore below ``root``. The first write creates the root."""

    def __init__(
        self, root: Path, *, now: Callable[[], datetime] = _now, lock_seconds: float = LOCK_SECONDS
    ) -> None:
        super().__init__(now)
        self._folders = Folders(root, lock_seconds=lock_seconds)

    def find(self, wanted: store.Filter) -> Iterator[store.Found | store.Broken]:
        for category in wanted.categories:
            for one in self._all(category, wanted):
                if isinstance(one, store.Broken):
                    yield one
                elif wanted.since is None or one.envelope.changed >= wanted.since:
                    yield store.Found(one.key, one.envelope)

    def cleanup(
        self,
        *,
        category: str,
        older_than: timedelta,
        dry_run: bool = False,
        progress: store.Progress = store.no_progress,
    ) -> store.Removed:
        before = self._now() - older_than
        removed, broken = [], []
        names = self._names(category)
        for done, name in enumerate(names, start=1):
            one = self._kept_or_broken(store.Key(category, name))
            if isinstance(one, store.Broken):
                broken.append(one)
            elif (
                one and one.envelope.changed < before and (dry_run or self._remove(one.key, before))
            ):
                removed.append(name)
            progress(done, len(names))
        return store.Removed(tuple(removed), tuple(broken))

    def count(self) -> int:
        return sum(
            len(self._names(category, archived=archived)) for category, archived in store.PLACES
        )

    def walk(self) -> Iterator[store.Kept | store.Broken]:
        for category, archived in store.PLACES:
            yield from self._all(category, store.Filter(archived=archived))

    def put(self, documents: Sequence[store.Kept], *, replace: bool = False) -> list[store.Put]:
        self._folders.make()
        with self._locked():
            try:
                return [self._put(each, replace=replace) for each in documents]
            finally:
                # Once for all documents of a folder, also for those before an error.
                places = {(each.key.category, each.key.archived) for each in documents}
                for category, archived in places:
                    with self._folders.folder(category, archived=archived) as folder:
                        tree_files.sync(present(folder))

    def _put(self, document: store.Kept, *, replace: bool) -> store.Put:
        key = document.key
        there = self._kept_or_broken(key)
        if isinstance(there, store.Broken):
            return store.Put(key, store.CONFLICT, f"what is there is broken: {there.problems[0]}")
        put = store.put_outcome(
            document,
            there.envelope.sha256 if there else None,
            replace=replace,
            is_archived=lambda: self._is_archived_by_now(document),
        )
        if put.is_written:
            with self._folders.folder(key.category, archived=key.archived) as folder:
                tree_files.write(present(folder), key.name, document.envelope.text)
        return put

    def _is_archived_by_now(self, document: store.Kept) -> bool:
        category, name = document.key.category, document.key.name
        with self._folders.folder(category, archived=True) as archive:
            if not tree_files.is_there(present(archive), name):
                return False
        return any(
            isinstance(one, store.Kept) and one.envelope.text == document.envelope.text
            for each in numbers_of(name, self._names(category, archived=True))
            for one in [self._kept_or_broken(store.Key(category, each, archived=True))]
        )

    def _all(self, category: str, wanted: store.Filter) -> Iterator[store.Kept | store.Broken]:
        for name in self._names(category, archived=wanted.archived):
            if wanted.fits_name(category, name):
                one = self._kept_or_broken(store.Key(category, name, wanted.archived))
                if one is not None:
                    yield one

    def _names(self, category: str, *, archived: bool = False) -> list[str]:
        with self._folders.folder(category, archived=archived) as folder:
            return tree_files.names_in(folder) if folder is not None else []

    def _names_like(self, key: store.Key) -> Iterable[str]:
        if key.category == CONTEXT:
            return self._names(key.category, archived=key.archived)
        with self._folders.folder(key.category, archived=key.archived) as folder:
            is_there = folder is not None and tree_files.is_there(folder, key.name)
            return [key.name] if is_there else []

    def _read(self, key: store.Key) -> store.Kept:
        with self._folders.folder(key.category, archived=key.archived) as folder:
            if folder is None:
                raise key.not_found()
            return kept_read(folder, key)

    def _kept_or_broken(self, key: store.Key) -> store.Kept | store.Broken | None:
        """Read a document; None if there is none."""
        try:
            return self._read(key)
        except strict_json.MemoryDocumentNotFoundError:
            return None
        except strict_json.MemoryDocumentInvalidError as error:
            return store.Broken(key.path, tuple(error.problems))

    def _existing(self, key: store.Key) -> store.Kept | None:
        old = super()._existing(key)
        if old is not None:
            with self._folders.folder(key.category) as folder:
                is_spelled_so = tree_files.is_spelled_so(present(folder), key.name)
            if not is_spelled_so:
                raise strict_json.MemoryDocumentStoreError(
                    f"{key.path} is there in other upper and lower case, which this file system "
                    "takes for the same. Choose another identifier."
                )
        return old

    def _write(self, document: store.Kept, *, is_new: bool, now: datetime) -> None:
        with self._folders.folder(document.key.category) as opened:
            folder = present(opened)
            tree_files.write(folder, document.key.name, document.envelope.text)
            tree_files.sync(folder)

    def _archive(self, key: store.Key) -> store.Key:
        with (
            self._folders.folder(key.category) as opened,
            self._folders.folder(key.category, archived=True) as opened_archive,
        ):
            archive = present(opened_archive)
            taken = tree_files.names_in(archive) if tree_files.is_there(archive, key.name) else []
            name = numbered(key.name, taken)
            tree_files.move(present(opened), key.name, archive, name)
        return store.Key(key.category, name, archived=True)

    def _remove(self, key: store.Key, before: datetime) -> bool:
        """Remove the document unless it was saved again meanwhile."""
        with self._locked():
            one = self._kept_or_broken(key)
            if not isinstance(one, store.Kept) or one.envelope.changed >= before:
                return False
            with self._folders.folder(key.category) as folder:
                tree_files.remove(present(folder), key.name)
            return True

    @contextmanager
    def _writing(self, category: str) -> Iterator[None]:
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
