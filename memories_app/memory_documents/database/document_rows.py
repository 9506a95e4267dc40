"""Write documents to rows and read them back.

Functions that write must be called while the category is locked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import F, QuerySet
from django.db.models.functions import Collate

from memories_app.memory_document_format.facade import (
    Envelope,
    envelope_read,
    identifier_of,
    numbered,
)
from memories_app.memory_documents.store_protocol import Found, Kept, Key
from memories_app.models import MemoryDocument, MemoryDocumentVersion
from memoryproject.foundation.audit.audit_events import Actor, Event, actor_name

# The order in which a tree lists file names, whatever the database's language.
BY_NAME = Collate("name", "C")


def categories_lock(categories: Iterable[str]) -> None:
    """Wait until nobody else writes documents of these categories.

    The locks are held until the transaction ends. They are always taken in one order, so that
    no deadlock occurs.
    """
    with connection.cursor() as cursor:
        for category in sorted(set(categories)):
            digest = hashlib.blake2b(f"memory documents {category}".encode(), digest_size=8)
            key = int.from_bytes(digest.digest(), "big", signed=True)
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def rows_in(category: str, *, archived: bool = False) -> QuerySet[MemoryDocument]:
    return MemoryDocument.objects.filter(category=category, archived_at__isnull=not archived)


def newest_versions() -> QuerySet[MemoryDocumentVersion]:
    """Return the newest version of each document."""
    return MemoryDocumentVersion.objects.filter(number=F("document__version")).select_related(
        "document"
    )


def key_of(row: MemoryDocument) -> Key:
    return Key(row.category, row.name, row.archived_at is not None)


def found_of(row: MemoryDocument) -> Found:
    return Found(
        key=key_of(row),
        summary=row.summary,
        created=row.created,
        changed=row.changed,
        status=row.status,
        session_id=row.session_id,
    )


def kept_of(version: MemoryDocumentVersion) -> Kept:
    return Kept(key_of(version.document), envelope_read(version.body))


def envelope_of(row: MemoryDocument) -> Envelope:
    return envelope_read(row.versions.get(number=row.version).body)


def new_row(document: Kept, *, now: datetime) -> MemoryDocument:
    key = document.key
    return MemoryDocument(
        category=key.category,
        name=key.name,
        identifier=identifier_of(key.category, key.name),
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
    row.name = numbered(row.name, archive.values_list("name", flat=True))
    row.identifier = identifier_of(row.category, row.name)
    row.archived_at = now
    row.save()


def event_of(
    action: str, row: MemoryDocument, actor: Actor, *, sha256: str = "", **details: Any
) -> Event:
    """Return the event for the audit log. It never holds the name, which people choose."""
    return Event(
        action=f"memory_document.{action}",
        actor=actor,
        object_type="memory_document",
        object_id=row.pk,
        content_hash=sha256,
        details={"category": row.category, **details},
    )


def _columns(envelope: Envelope) -> dict[str, Any]:
    return {
        "summary": envelope.summary,
        "session_id": envelope.session_id,
        "status": envelope.status,
        "created": envelope.created,
        "changed": envelope.changed,
    }
