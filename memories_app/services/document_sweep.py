"""Takes up documents that a dead worker left, and removes files that nobody waits for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from django.utils import timezone

from memories_app.models import SourceDocument
from memories_app.services.document_files import files_lying
from memories_app.services.document_leases import WAITING, is_held

# Somebody has just received it and is about to enqueue it.
JUST_NOW = timedelta(seconds=30)
# A message's document is read in its turn, which is swept by itself.
LEFT_TO_ITS_TURN = timedelta(hours=1)


def documents_sweep(
    *, folder: Path, enqueue: Callable[[UUID], None], now: datetime | None = None
) -> dict[str, int]:
    """Enqueue what waits with nobody at work, remove files that are left over. Safe to run
    at any time, by several at once. Returns how many of each."""
    now = now or timezone.now()
    enqueued = 0
    for document in SourceDocument.objects.filter(state__in=WAITING).order_by("created_at"):
        patience = LEFT_TO_ITS_TURN if document.source_message_id else JUST_NOW
        if now - document.created_at > patience and not is_held(document, now):
            enqueue(document.document_id)
            enqueued += 1
    removed = 0
    for path, document_id, is_old in list(files_lying(folder)):
        if _is_left_over(document_id, is_old=is_old):
            path.unlink(missing_ok=True)
            removed += 1
    return {"enqueued": enqueued, "files_removed": removed}


def _is_left_over(document_id: UUID | None, *, is_old: bool) -> bool:
    if document_id is None:
        return is_old
    document = SourceDocument.objects.filter(pk=document_id).only("state").first()
    # Its row may be in a transaction that isn't committed yet.
    return is_old if document is None else document.state not in WAITING
