"""Delete documents with all their versions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memories_app.memory_document_format.facade import CATEGORIES, envelope_read
from memories_app.memory_documents.database.document_rows import (
    BY_NAME,
    categories_lock,
    event_of,
    rows_in,
)
from memories_app.memory_documents.store_protocol import Progress, no_progress
from memories_app.models import MemoryDocument, MemoryDocumentVersion
from memoryproject.foundation.audit.audit_events import Actor, audit_record_many

AT_ONCE = 500


def documents_remove_older(
    *, category: str, before: datetime, actor: Actor, progress: Progress = no_progress
) -> list[str]:
    """Delete unarchived documents that were last saved before this time; return their names.

    They are deleted in small batches, each in its own transaction.
    """
    due = rows_in(category).filter(changed__lt=before)
    total = due.count()
    names: list[str] = []
    while True:
        with transaction.atomic():
            categories_lock([category])
            rows = list(due.order_by(BY_NAME)[:AT_ONCE])
            _remove(rows, actor)
        if not rows:
            return names
        names += [row.name for row in rows]
        progress(len(names), max(total, len(names)))


def documents_remove(*, ids: Sequence[UUID], actor: Actor) -> int:
    """Delete these documents, archived or not; return how many existed."""
    with transaction.atomic():
        categories_lock(CATEGORIES)
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
