"""Queue uploaded documents for the workers."""

from __future__ import annotations

from uuid import UUID

from memoryproject.foundation.process.jobs import enqueue


def enqueue_document(document_id: UUID) -> None:
    """Queue this document for a worker."""
    name = f"read {document_id}"
    enqueue("sessions_app.tasks.read_document", str(document_id), task_name=name)
