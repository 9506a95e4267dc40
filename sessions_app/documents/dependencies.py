"""Hand uploaded documents to the workers."""

from __future__ import annotations

from uuid import UUID

from django_q.tasks import async_task


def enqueue_document(document_id: UUID) -> None:
    """Let a worker read this document."""
    name = f"read {document_id}"
    async_task("sessions_app.tasks.read_document", str(document_id), task_name=name)
