"""Memory documents in the database, with all versions of each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from memories_app.memory_document_format.names import numbers_of
from memories_app.memory_documents import document_rows, store
from memories_app.models import MemoryDocument, MemoryDocumentVersion
from memoryproject.foundation.audit.audit_events import (
    Actor,
    Event,
    audit_record,
    audit_record_many,
)

AT_ONCE = 100


class DatabaseStore(store.MemoryDocumentStore):
    """See MemoryDocumentStore. ``actor`` is recorded in the audit log."""

    def __init__(self, *, actor: Actor, now: Callable[[], datetime] = timezone.now) -> None:
        super().__init__(now)
        self._actor = actor

    def document_id(self, *, category: str, identifier: str, archived: bool = False) -> UUID:
        """Return the id of the document that ``load`` would return.

        Raises MemoryDocumentNotFoundError.
        """
        key = self._meant(category, identifier, archived=archived)
        row = _rows_at(key).first()
        if row is None:
            raise key.not_found()
        return row.pk

    def find(self, wanted: store.Filter) -> Iterator[store.Found | store.Broken]:
        for category in wanted.categories:
            rows = document_rows.rows_in(category, archived=wanted.archived).order_by(
                document_rows.BY_NAME
            )
            if wanted.since is not None:
                rows = rows.filter(changed__gte=wanted.since)
            for row in rows.iterator(chunk_size=AT_ONCE):
                if wanted.fits_name(category, row.name):
                    yield store.Found(document_rows.key_of(row), row)

    def cleanup(
        self,
        *,
        category: str,
        older_than: timedelta,
        dry_run: bool = False,
        progress: store.Progress = store.no_progress,
    ) -> store.Removed:
        before = self._now() - older_than
        if dry_run:
            due = (
                document_rows.rows_in(category)
                .filter(changed__lt=before)
                .order_by(document_rows.BY_NAME)
            )
            return store.Removed(tuple(due.values_list("name", flat=True)))
        names = document_rows.documents_remove_older(
            category=category, before=before, actor=self._actor
        )
        return store.Removed(tuple(names))

    def count(self) -> int:
        return MemoryDocument.objects.count()

    def walk(self) -> Iterator[store.Kept | store.Broken]:
        """Yield all documents. The audit log records it before the first one is returned."""
        with transaction.atomic():
            audit_record("export", self._actor, "memory_documents", documents=self.count())
        for category, archived in store.PLACES:
            versions = document_rows.newest_versions().filter(
                document__category=category, document__archived_at__isnull=not archived
            )
            for version in versions.order_by("document__name").iterator(chunk_size=AT_ONCE):
                yield document_rows.kept_of(version)

    def put(self, documents: Sequence[store.Kept], *, replace: bool = False) -> list[store.Put]:
        """Store all documents or none. The number of queries doesn't grow with new documents."""
        with transaction.atomic():
            document_rows.categories_lock(document.key.category for document in documents)
            putting = _Putting(documents, replace=replace, actor=self._actor, now=self._now())
            outcomes = [putting.put(document) for document in documents]
            putting.write()
        return outcomes

    @contextmanager
    def _writing(self, category: str) -> Iterator[None]:
        with transaction.atomic():
            document_rows.categories_lock([category])
            yield

    def _names_like(self, key: store.Key) -> Iterable[str]:
        rows = document_rows.rows_in(key.category, archived=key.archived)
        named = rows.filter(Q(identifier=key.name) | Q(name=key.name))
        return named.values_list("name", flat=True)

    def _read(self, key: store.Key) -> store.Kept:
        # One query for both: the document may be saved or removed at the same time.
        version = document_rows.newest_versions().filter(document__in=_rows_at(key)).first()
        if version is None:
            raise key.not_found()
        return document_rows.kept_of(version)

    def _write(self, document: store.Kept, *, is_new: bool, now: datetime) -> None:
        envelope = document.envelope
        if is_new:
            row = document_rows.new_row(document, now=now)
            row.save(force_insert=True)
            document_rows.new_version(row, envelope, actor=self._actor, now=now).save()
        else:
            row = _rows_at(document.key).get()
            document_rows.row_update(row, envelope, actor=self._actor, now=now)
        self._record("save", row, sha256=envelope.sha256, version=row.version)

    def _archive(self, key: store.Key) -> store.Key:
        row = _rows_at(key).get()
        document_rows.row_archive(row, now=self._now())
        self._record("archive", row)
        return document_rows.key_of(row)

    def _record(self, action: str, row: MemoryDocument, **details: Any) -> None:
        audit_record_many(events=[document_rows.event_of(action, row, self._actor, **details)])


def _rows_at(key: store.Key) -> Any:
    return document_rows.rows_in(key.category, archived=key.archived).filter(name=key.name)


class _Putting:
    """Documents that are stored at once, each at its own place."""

    def __init__(
        self, documents: Sequence[store.Kept], *, replace: bool, actor: Actor, now: datetime
    ) -> None:
        self._replace = replace
        self._actor = actor
        self._now = now
        # The row and the hash of each document that has its place.
        self._there = _found(documents)
        self._archived = _archived_alike(documents)
        self._new: list[tuple[MemoryDocument, store.Kept]] = []
        self._events: list[Event] = []

    def put(self, document: store.Kept) -> store.Put:
        key, sha256 = document.key, document.envelope.sha256
        row, hash_there = self._there.get(key, (None, None))
        alike = self._archived.get((key.category, sha256), [])
        put = store.put_outcome(
            document,
            hash_there,
            # A document that was just stored under the same name isn't replaced.
            replace=self._replace and row is not None and not row._state.adding,
            is_archived=lambda: bool(numbers_of(key.name, alike)),
        )
        if not put.is_written:
            return put
        if row is None:
            row = document_rows.new_row(document, now=self._now)
            self._new.append((row, document))
        elif put.outcome == store.UPDATED:
            document_rows.row_update(row, document.envelope, actor=self._actor, now=self._now)
        self._there[key] = (row, sha256)
        event = document_rows.event_of(
            "import", row, self._actor, sha256=sha256, version=row.version
        )
        self._events.append(event)
        return put

    def write(self) -> None:
        MemoryDocument.objects.bulk_create(row for row, _ in self._new)
        MemoryDocumentVersion.objects.bulk_create(
            document_rows.new_version(row, document.envelope, actor=self._actor, now=self._now)
            for row, document in self._new
        )
        audit_record_many(events=self._events)


def _found(documents: Sequence[store.Kept]) -> dict[store.Key, tuple[MemoryDocument, str]]:
    """Return the documents that already exist at these places."""
    names: dict[str, list[str]] = {}
    for document in documents:
        names.setdefault(document.key.category, []).append(document.key.name)
    wanted = Q(pk__in=[])
    for category, some in names.items():
        wanted |= Q(document__category=category, document__name__in=some)
    versions = document_rows.newest_versions().filter(wanted).defer("body")
    return {document_rows.key_of(each.document): (each.document, each.sha256) for each in versions}


def _archived_alike(documents: Sequence[store.Kept]) -> dict[tuple[str, str], list[str]]:
    """Return the names of archived documents with one of these texts, by category and hash."""
    versions = document_rows.newest_versions().filter(
        sha256__in=[document.envelope.sha256 for document in documents],
        document__archived_at__isnull=False,
    )
    alike: dict[tuple[str, str], list[str]] = {}
    for version in versions.defer("body"):
        key = (version.document.category, version.sha256)
        alike.setdefault(key, []).append(version.document.name)
    return alike
