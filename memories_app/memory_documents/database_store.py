"""Memory documents in the database, with all versions of each."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from memories_app.memory_documents import document_rows, store as documents
from memories_app.models import MemoryDocument
from memoryproject.foundation.audit.audit_events import Actor, audit_record, audit_record_many

AT_ONCE = 100


class DatabaseStore(documents.MemoryDocumentStore):
    """See MemoryDocumentStore. ``actor`` is recorded in the audit log."""

    def __init__(self, *, actor: Actor, now: Callable[[], datetime] = timezone.now) -> None:
        super().__init__(now)
        self._actor = actor

    def row(self, *, category: str, identifier: str, archived: bool = False) -> MemoryDocument:
        """Return the row of the document that ``load`` would return.

        Raises MemoryDocumentNotFoundError.
        """
        key = self._meant(category, identifier, archived=archived)
        row: MemoryDocument | None = _rows_at(key).first()
        if row is None:
            raise key.not_found()
        return row

    def find(self, wanted: documents.Filter) -> Iterator[documents.Found | documents.Broken]:
        for category in wanted.categories:
            rows = document_rows.rows_in(category, archived=wanted.archived).order_by(
                document_rows.BY_NAME
            )
            if wanted.since is not None:
                rows = rows.filter(changed__gte=wanted.since)
            for row in rows.iterator(chunk_size=AT_ONCE):
                if wanted.fits_name(category, row.name):
                    yield documents.Found(document_rows.key_of(row), row)

    def _cleanup(
        self, category: str, before: datetime, *, dry_run: bool, progress: documents.Progress
    ) -> documents.Removed:
        if dry_run:
            due = (
                document_rows.rows_in(category)
                .filter(changed__lt=before)
                .order_by(document_rows.BY_NAME)
            )
            return documents.Removed(tuple(due.values_list("name", flat=True)))
        names = document_rows.documents_remove_older(
            category=category, before=before, actor=self._actor
        )
        return documents.Removed(tuple(names))

    def count(self) -> int:
        return MemoryDocument.objects.count()

    def walk(self) -> Iterator[documents.Kept | documents.Broken]:
        """Yield all documents. The audit log records it before the first one is returned."""
        with transaction.atomic():
            audit_record("export", self._actor, "memory_documents", documents=self.count())
        for category, archived in documents.PLACES:
            versions = document_rows.newest_versions().filter(
                document__category=category, document__archived_at__isnull=not archived
            )
            for version in versions.order_by("document__name").iterator(chunk_size=AT_ONCE):
                yield document_rows.kept_of(version)

    @contextmanager
    def _writing(self, *categories: str) -> Iterator[None]:
        with transaction.atomic():
            document_rows.categories_lock(categories)
            yield

    def _names_like(self, key: documents.Key) -> Iterable[str]:
        rows = document_rows.rows_in(key.category, archived=key.archived)
        named = rows.filter(Q(identifier=key.name) | Q(name=key.name))
        return named.values_list("name", flat=True)

    def _archived_like(self, category: str, name: str) -> Iterable[str]:
        rows = document_rows.rows_in(category, archived=True).filter(name__startswith=name)
        return rows.values_list("name", flat=True)

    def _read(self, key: documents.Key) -> documents.Kept:
        # One query for both: the document may be saved or removed at the same time.
        version = document_rows.newest_versions().filter(document__in=_rows_at(key)).first()
        if version is None:
            raise key.not_found()
        return document_rows.kept_of(version)

    def _write(
        self, document: documents.Kept, *, is_new: bool, now: datetime, action: str = "save"
    ) -> None:
        envelope = document.envelope
        if is_new:
            row = document_rows.new_row(document, now=now)
            row.save(force_insert=True)
            document_rows.new_version(row, envelope, actor=self._actor, now=now).save()
        else:
            row = _rows_at(document.key).get()
            document_rows.row_update(row, envelope, actor=self._actor, now=now)
        self._record(action, row, sha256=envelope.sha256, version=row.version)

    def _archive(self, key: documents.Key) -> documents.Key:
        row = _rows_at(key).get()
        document_rows.row_archive(row, now=self._now())
        self._record("archive", row)
        return document_rows.key_of(row)

    def _record(self, action: str, row: MemoryDocument, **details: Any) -> None:
        audit_record_many(events=[document_rows.event_of(action, row, self._actor, **details)])


def _rows_at(key: documents.Key) -> Any:
    return document_rows.rows_in(key.category, archived=key.archived).filter(name=key.name)
