"""Write documents to rows and read them back.

Functions that write must be called while the category is locked.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Collate

from memories_app.memory_document_format import names as spelling
from memories_app.memory_document_format.envelope import Envelope, envelope_read
from memories_app.memory_documents.store import Kept, Key
from memories_app.models import MemoryDocument, MemoryDocumentVersion
from memories_app.store.memory_fields import names_lock
from memoryproject.foundation.audit.audit_events import (
    SYSTEM,
    Actor,
    Event,
    actor_name,
    audit_record_many,
)

# The order in which a tree lists file names, whatever the database's language.
BY_NAME = Collate("name", "C")


def categories_lock(categories: Iterable[str]) -> None:
    """Wait until nobody else writes documents of these categories, to the transaction's end."""
    names_lock(f"memory documents {category}" for category in categories)


def rows_in(category: str, *, archived: bool = False) -> QuerySet[MemoryDocument]:
    return MemoryDocument.objects.filter(category=category, archived_at__isnull=not archived)


def newest_versions() -> QuerySet[MemoryDocumentVersion]:
    """Return the newest version of each document."""
    return MemoryDocumentVersion.objects.filter(number=F("document__version")).select_related(
        "document"
    )


def key_of(row: MemoryDocument) -> Key:
    return Key(row.category, row.name, row.archived_at is not None)


def kept_of(version: MemoryDocumentVersion) -> Kept:
    return Kept(key_of(version.document), envelope_read(version.body))


def envelope_of(row: MemoryDocument) -> Envelope:
    return envelope_read(row.versions.get(number=row.version).body)


def new_row(document: Kept, *, now: datetime) -> MemoryDocument:
    key = document.key
    return MemoryDocument(
        category=key.category,
        name=key.name,
        identifier=spelling.identifier_of(key.category, key.name),
        archived_at=now if key.archived else None,
        **_columns(document.envelope),
    )


def new_version(
    row: MemoryDocument, envelope: Envelope, *, actor: Actor, now: datetime
) -> MemoryDocumentVersion:
    return MemoryDocumentVersion(
        document=row,
        number=row.version,
        body=envelope.text,
        sha256=envelope.sha256,
        saved_at=now,
        saved_by_kind=actor.kind,
        saved_by_name=actor_name(actor),
    )


def row_update(row: MemoryDocument, envelope: Envelope, *, actor: Actor, now: datetime) -> None:
    """Add a new version to the document. Older versions stay."""
    row.version += 1
    for name, value in _columns(envelope).items():
        setattr(row, name, value)
    row.save()
    new_version(row, envelope, actor=actor, now=now).save()


def row_archive(row: MemoryDocument, *, now: datetime) -> None:
    """Archive the document. A name that is taken in the archive gets a number."""
    archive = rows_in(row.category, archived=True).filter(name__startswith=row.name)
    row.name = spelling.numbered(row.name, archive.values_list("name", flat=True))
    row.identifier = spelling.identifier_of(row.category, row.name)
    row.archived_at = now
    row.save()


def event_of(
    action: str, row: MemoryDocument, actor: Actor, *, sha256: str = "", **details: Any
) -> Event:
    """Return the event for the audit log. It never holds the name, which people choose."""
    return Event(
        f"memory_document.{action}",
        actor,
        "memory_document",
        row.pk,
        content_hash=sha256,
        details={"category": row.category, **details},
    )


def _columns(envelope: Envelope) -> dict[str, Any]:
    names = ("summary", "session_id", "status", "created", "changed")
    return {name: getattr(envelope, name) for name in names}


# Delete documents with all their versions.


def documents_remove_older(*, category: str, before: datetime, actor: Actor) -> list[str]:
    """Delete unarchived documents that were last saved before this time; return their names."""
    with transaction.atomic():
        categories_lock([category])
        rows = list(rows_in(category).filter(changed__lt=before).order_by(BY_NAME))
        _remove(rows, actor)
    return [row.name for row in rows]


def documents_remove(*, ids: Sequence[UUID], actor: Actor) -> int:
    """Delete these documents, archived or not; return how many existed."""
    with transaction.atomic():
        categories_lock(spelling.CATEGORIES)
        rows = list(MemoryDocument.objects.filter(pk__in=list(ids)))
        _remove(rows, actor)
    return len(rows)


def document_lock(document_id: UUID) -> None:
    """Lock the category of the document, so that nobody else writes it; nothing if it is gone."""
    found = MemoryDocument.objects.filter(pk=document_id)
    categories_lock(found.values_list("category", flat=True))


def document_texts(document_id: UUID) -> list[str] | None:
    """Return the content of all versions of the document as JSON; None if it is gone.

    Its envelope is no text: a time in it would match every other record of that minute.
    """
    row = MemoryDocument.objects.filter(pk=document_id).first()
    if row is None:
        return None
    bodies = row.versions.order_by("number").values_list("body", flat=True)
    contents = (envelope_read(body).content for body in bodies)
    return list(dict.fromkeys(json.dumps(each, ensure_ascii=False) for each in contents))


def document_erase(*, document_id: UUID, actor: Actor, receipt_id: UUID) -> dict[str, int]:
    """Delete the document with its versions; return the number of rows by table.

    Call it with the document locked.
    """
    rows = list(MemoryDocument.objects.filter(pk=document_id))
    versions = MemoryDocumentVersion.objects.filter(document__in=rows).count()
    _remove(rows, actor, receipt_id=str(receipt_id))
    return {
        MemoryDocument._meta.db_table: len(rows),
        MemoryDocumentVersion._meta.db_table: versions,
    }


def document_rows_left(document_id: UUID) -> int:
    """Return how many rows there are of the document and its versions."""
    versions = MemoryDocumentVersion.objects.filter(document=document_id)
    return MemoryDocument.objects.filter(pk=document_id).count() + versions.count()


def _remove(rows: Sequence[MemoryDocument], actor: Actor, **details: Any) -> None:
    audit_record_many(events=[event_of("remove", row, actor, **details) for row in rows])
    MemoryDocument.objects.filter(pk__in=[row.pk for row in rows]).delete()


# Remove and archive memory documents on a schedule.


def documents_tend(*, now: datetime, context_older_than: timedelta | None) -> dict[str, int]:
    """Remove old context documents, and archive handoffs that were completed when they came in.

    Context documents are removed if they were last saved longer ago than the limit; None
    removes none. Decisions are archived by hand, interfaces are updated in place. Return how
    many documents were removed and archived.
    """
    removed: list[str] = []
    if context_older_than is not None:
        before = now - context_older_than
        removed = documents_remove_older(category=spelling.CONTEXT, before=before, actor=SYSTEM)
    return {"removed": len(removed), "archived": _archive_completed(now)}


def _archive_completed(now: datetime) -> int:
    with transaction.atomic():
        categories_lock([spelling.HANDOFFS])
        rows = [
            row
            for row in rows_in(spelling.HANDOFFS).filter(status=spelling.COMPLETE)
            if envelope_of(row).is_completed
        ]
        for row in rows:
            row_archive(row, now=now)
        audit_record_many(events=[event_of("archive", row, SYSTEM) for row in rows])
    return len(rows)
