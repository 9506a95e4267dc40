"""Memory documents in the database, with all versions of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from memories_app.memory_document_format.facade import (
    CATEGORIES,
    MemoryDocumentNotFoundError,
    envelope_saved,
    identifier_of,
    identifier_read,
    name_for,
    newest,
    numbers_of,
)
from memories_app.memory_documents.database.document_rows import (
    BY_NAME,
    categories_lock,
    documents_remove_older,
    envelope_of,
    event_of,
    found_of,
    kept_of,
    key_of,
    new_row,
    new_version,
    newest_versions,
    row_archive,
    row_update,
    rows_in,
)
from memories_app.memory_documents.store_protocol import (
    ANOTHER_TEXT,
    CONFLICT,
    CREATED,
    UNCHANGED,
    UPDATED,
    Broken,
    Filter,
    Found,
    Kept,
    Key,
    Progress,
    Put,
    Removed,
    Saved,
    no_progress,
)
from memories_app.models import MemoryDocument, MemoryDocumentVersion
from memoryproject.foundation.audit.audit_events import (
    Actor,
    Event,
    audit_record,
    audit_record_many,
)

AT_ONCE = 100


class DatabaseStore:
    """A MemoryDocumentStore. ``actor`` is recorded in the audit log."""

    def __init__(self, *, actor: Actor, now: Callable[[], datetime] = timezone.now) -> None:
        self._actor = actor
        self._now = now

    def save(
        self,
        *,
        category: str,
        identifier: str,
        content: Mapping[str, Any],
        session_id: str | None = None,
        check: Callable[[Kept | None], None] = lambda _: None,
    ) -> Saved:
        """Save a document. ``check`` gets the existing document or None before any change.

        Errors that it raises are passed on.
        """
        now = self._now()
        key = Key(category, name_for(category, identifier, now.date()))
        values: dict[str, Any] = {
            "category": category,
            "summary": identifier_of(category, key.name),
            "content": content,
            "session_id": session_id,
            "now": now,
        }
        new = envelope_saved(None, **values)
        with transaction.atomic():
            categories_lock([category])
            row = rows_in(category).filter(name=key.name).first()
            check(None if row is None else Kept(key, envelope_of(row)))
            if row is None:
                outcome = CREATED
                row = self._create(Kept(key, new), now)
            else:
                old = envelope_of(row)
                new = envelope_saved(old, **values)
                outcome = UNCHANGED if new is old else UPDATED
                if outcome == UPDATED:
                    row_update(row, new, actor=self._actor, now=now)
            if outcome != UNCHANGED:
                self._record("save", row, sha256=new.sha256, version=row.version)
            archived_as = self._archive(row) if new.is_completed else None
        return Saved(key, outcome, new, archived_as)

    def load(self, *, category: str, identifier: str, archived: bool = False) -> Kept:
        # One query for both: the document may be saved or removed at the same time.
        name = self._name_meant(category, identifier, archived=archived)
        version = (
            newest_versions()
            .filter(document__in=rows_in(category, archived=archived).filter(name=name))
            .first()
        )
        if version is None:
            raise _not_found(category, identifier, archived=archived)
        return kept_of(version)

    def document_id(self, *, category: str, identifier: str, archived: bool = False) -> UUID:
        """Return the id of the document that ``load`` would return.

        Raises MemoryDocumentNotFoundError.
        """
        name = self._name_meant(category, identifier, archived=archived)
        row = rows_in(category, archived=archived).filter(name=name).first()
        if row is None:
            raise _not_found(category, identifier, archived=archived)
        return row.pk

    def find(self, wanted: Filter) -> Iterator[Found | Broken]:
        for category in wanted.categories:
            rows = rows_in(category, archived=wanted.archived).order_by(BY_NAME)
            if wanted.since is not None:
                rows = rows.filter(changed__gte=wanted.since)
            for row in rows.iterator(chunk_size=AT_ONCE):
                if wanted.fits_name(category, row.name):
                    yield found_of(row)

    def cleanup(
        self,
        *,
        category: str,
        older_than: timedelta,
        dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> Removed:
        before = self._now() - older_than
        if dry_run:
            due = rows_in(category).filter(changed__lt=before).order_by(BY_NAME)
            return Removed(tuple(due.values_list("name", flat=True)))
        return Removed(
            tuple(
                documents_remove_older(
                    category=category, before=before, actor=self._actor, progress=progress
                )
            )
        )

    def archive(self, *, category: str, identifier: str) -> Key:
        with transaction.atomic():
            categories_lock([category])
            name = self._name_meant(category, identifier)
            return self._archive(rows_in(category).get(name=name))

    def count(self) -> int:
        return MemoryDocument.objects.count()

    def walk(self) -> Iterator[Kept | Broken]:
        """Yield all documents. The audit log records it before the first one is returned."""
        with transaction.atomic():
            audit_record(
                action="export",
                actor=self._actor,
                object_type="memory_documents",
                details={"documents": self.count()},
            )
        for archived in (False, True):
            for category in CATEGORIES:
                versions = newest_versions().filter(
                    document__category=category, document__archived_at__isnull=not archived
                )
                for version in versions.order_by("document__name").iterator(chunk_size=AT_ONCE):
                    yield kept_of(version)

    def put(self, documents: Sequence[Kept], *, replace: bool = False) -> list[Put]:
        return documents_put(
            documents=documents, replace=replace, actor=self._actor, now=self._now()
        )

    def _name_meant(self, category: str, identifier: str, *, archived: bool = False) -> str:
        """Return the name that an identifier means. Raises MemoryDocumentNotFoundError."""
        identifier = identifier_read(identifier)
        rows = rows_in(category, archived=archived)
        named = rows.filter(Q(identifier=identifier) | Q(name=identifier))
        name = newest(category, identifier, named.values_list("name", flat=True))
        if name is None:
            raise _not_found(category, identifier, archived=archived)
        return name

    def _create(self, document: Kept, now: datetime) -> MemoryDocument:
        row = new_row(document, now=now)
        row.save(force_insert=True)
        new_version(row, document.envelope, actor=self._actor, now=now).save()
        return row

    def _archive(self, row: MemoryDocument) -> Key:
        row_archive(row, now=self._now())
        self._record("archive", row)
        return key_of(row)

    def _record(self, action: str, row: MemoryDocument, **details: Any) -> None:
        audit_record_many(events=[event_of(action, row, self._actor, **details)])


def _not_found(category: str, identifier: str, *, archived: bool) -> MemoryDocumentNotFoundError:
    return MemoryDocumentNotFoundError(f"There is no {Key(category, identifier, archived).path}.")


# Store documents unchanged, each at its own place.


@dataclass(frozen=True)
class _There:
    row: MemoryDocument
    sha256: str


def documents_put(
    *, documents: Sequence[Kept], replace: bool, actor: Actor, now: datetime
) -> list[Put]:
    """Store all documents or none. The number of queries doesn't grow with new documents."""
    with transaction.atomic():
        categories_lock(document.key.category for document in documents)
        putting = _Putting(documents, replace=replace, actor=actor, now=now)
        outcomes = [putting.put(document) for document in documents]
        putting.write()
    return outcomes


class _Putting:
    def __init__(
        self, documents: Sequence[Kept], *, replace: bool, actor: Actor, now: datetime
    ) -> None:
        self._replace = replace
        self._actor = actor
        self._now = now
        self._there = _found(documents)
        self._archived = _archived_alike(documents)
        self._new: list[tuple[MemoryDocument, Kept]] = []
        self._events: list[Event] = []

    def put(self, document: Kept) -> Put:
        key, sha256 = document.key, document.envelope.sha256
        there = self._there.get(key)
        if there is None:
            if self._is_archived_by_now(document):
                return Put(key, UNCHANGED)
            row = new_row(document, now=self._now)
            self._new.append((row, document))
            self._there[key] = _There(row, sha256)
            self._record(row, sha256)
            return Put(key, CREATED)
        if there.sha256 == sha256:
            return Put(key, UNCHANGED)
        # A document that was just stored under the same name isn't replaced either.
        if not self._replace or there.row._state.adding:
            return Put(key, CONFLICT, ANOTHER_TEXT)
        row_update(there.row, document.envelope, actor=self._actor, now=self._now)
        self._there[key] = _There(there.row, sha256)
        self._record(there.row, sha256)
        return Put(key, UPDATED)

    def write(self) -> None:
        MemoryDocument.objects.bulk_create(row for row, _ in self._new)
        MemoryDocumentVersion.objects.bulk_create(
            new_version(row, document.envelope, actor=self._actor, now=self._now)
            for row, document in self._new
        )
        audit_record_many(events=self._events)

    def _is_archived_by_now(self, document: Kept) -> bool:
        """Return whether the same text was archived here since; then it isn't restored."""
        key = document.key
        if key.archived:
            return False
        alike = self._archived.get((key.category, document.envelope.sha256), [])
        return bool(numbers_of(key.name, alike))

    def _record(self, row: MemoryDocument, sha256: str) -> None:
        self._events.append(
            event_of("import", row, self._actor, sha256=sha256, version=row.version)
        )


def _found(documents: Sequence[Kept]) -> dict[Key, _There]:
    """Return the documents that already exist at these places."""
    names: dict[str, list[str]] = {}
    for document in documents:
        names.setdefault(document.key.category, []).append(document.key.name)
    wanted = Q(pk__in=[])
    for category, some in names.items():
        wanted |= Q(document__category=category, document__name__in=some)
    versions = newest_versions().filter(wanted).defer("body")
    return {
        key_of(version.document): _There(version.document, version.sha256) for version in versions
    }


def _archived_alike(documents: Sequence[Kept]) -> dict[tuple[str, str], list[str]]:
    """Return the names of archived documents with one of these texts, by category and hash."""
    versions = newest_versions().filter(
        sha256__in=[document.envelope.sha256 for document in documents],
        document__archived_at__isnull=False,
    )
    alike: dict[tuple[str, str], list[str]] = {}
    for version in versions.defer("body"):
        key = (version.document.category, version.sha256)
        alike.setdefault(key, []).append(version.document.name)
    return alike
