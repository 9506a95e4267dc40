"""Find documents of dead workers, and remove files that no document waits for."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from django.db.models import Q

from memories_app.documents.claims import WAITING
from memories_app.documents.document_files import files_lying
from memories_app.models import SourceDocument

# The document may just have been received and is about to be queued.
JUST_NOW = timedelta(seconds=30)
# A message's document is read in its turn, which has its own sweep.
LEFT_TO_ITS_TURN = timedelta(hours=1)


def documents_abandoned(now: datetime) -> list[UUID]:
    """Return the documents that have waited for some time without a worker."""
    uploaded = Q(source_message_id__isnull=True, created_at__lt=now - JUST_NOW)
    waited = uploaded | Q(created_at__lt=now - LEFT_TO_ITS_TURN)
    waiting = SourceDocument.objects.filter(waited, state__in=WAITING).order_by("created_at")
    return [document.pk for document in waiting.abandoned(now)]


def leftovers_remove(folder: Path) -> int:
    """Remove the files that no document waits for; return how many."""
    removed = 0
    for path, document_id, is_old in list(files_lying(folder)):
        if _is_left_over(document_id, is_old=is_old):
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _is_left_over(document_id: UUID | None, *, is_old: bool) -> bool:
    if document_id is None:
        return is_old
    document = SourceDocument.objects.filter(pk=document_id).only("state").first()
    # Its row may be in a transaction that isn't committed yet.
    return is_old if document is None else document.state not in WAITING
