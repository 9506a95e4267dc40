"""Store documents unchanged, each at its own place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from memories_app.memory_document_format.facade import numbers_of
from memories_app.memory_documents.database.document_rows import (
    categories_lock,
    event_of,
    key_of,
    new_row,
    new_version,
    newest_versions,
    row_update,
)
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
from memories_app.models import MemoryDocument, MemoryDocumentVersion
from memoryproject.foundation.audit.audit_events import Actor, Event, audit_record_many


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
