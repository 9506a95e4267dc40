"""Claims of documents: one worker at a time reads a document."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import F

from memories_app.models import DocumentState, SourceDocument
from memoryproject.foundation.leases import Lease

WAITING = (DocumentState.RECEIVED, DocumentState.EXTRACTING)


class DocumentBusyError(Exception):
    """Another worker is reading the document, or it was forgotten meanwhile."""


@dataclass(frozen=True)
class DocumentLease(Lease[SourceDocument]):
    """The right to read one document."""

    def lost(self) -> DocumentBusyError:
        # Its own error: a turn that reads a document may lose its lease in the same step.
        return DocumentBusyError(f"the lease of document {self.row.pk} is lost")


def document_claim(document: SourceDocument) -> DocumentLease:
    """Take the lease. Raises DocumentBusyError."""
    token = SourceDocument.objects.filter(state__in=WAITING).claim(
        document, state=DocumentState.EXTRACTING, attempts=F("attempts") + 1
    )
    if token is None:
        raise DocumentBusyError(f"document {document.document_id} is being read")
    return DocumentLease(document, token)
