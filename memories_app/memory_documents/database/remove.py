"""Delete documents with all their versions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memories_app.memory_document_format.facade import CATEGORIES
from memories_app.memory_documents.database.document_rows import (
    BY_NAME,
    categories_lock,
    event_of,
    rows_in,
)
from memories_app.memory_documents.store_protocol import Progress, no_progress
from memories_app.models import MemoryDocument
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


def _remove(rows: Sequence[MemoryDocument], actor: Actor) -> None:
    audit_record_many(events=[event_of("remove", row, actor) for row in rows])
    MemoryDocument.objects.filter(pk__in=[row.pk for row in rows]).delete()
