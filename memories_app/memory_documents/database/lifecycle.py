"""Remove and archive memory documents on a schedule."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from memories_app.memory_document_format.facade import COMPLETE, CONTEXT, HANDOFFS
from memories_app.memory_documents.database.document_rows import (
    categories_lock,
    envelope_of,
    event_of,
    row_archive,
    rows_in,
)
from memories_app.memory_documents.database.remove import documents_remove_older
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, audit_record_many


def documents_tend(
    *, now: datetime, context_older_than: timedelta | None, actor: Actor = SYSTEM
) -> dict[str, int]:
    """Remove old context documents, and archive handoffs that were completed when they came in.

    Context documents are removed if they were last saved longer ago than the limit; None
    removes none. Decisions are archived by hand, interfaces are updated in place. Return how
    many documents were removed and archived.
    """
    removed: list[str] = []
    if context_older_than is not None:
        removed = documents_remove_older(
            category=CONTEXT, before=now - context_older_than, actor=actor
        )
    return {"removed": len(removed), "archived": _archive_completed(now=now, actor=actor)}


def _archive_completed(*, now: datetime, actor: Actor) -> int:
    with transaction.atomic():
        categories_lock([HANDOFFS])
        rows = [
            row
            for row in rows_in(HANDOFFS).filter(status=COMPLETE)
            if envelope_of(row).is_completed
        ]
        for row in rows:
            row_archive(row, now=now)
        audit_record_many(events=[event_of("archive", row, actor) for row in rows])
    return len(rows)
