"""Queue sessions for the workers that embed their messages."""

from __future__ import annotations

from uuid import UUID

from memoryproject.foundation.process.lanes import enqueue


def enqueue_vectors(session_id: UUID) -> None:
    """Queue a task that makes the missing vectors of this session's messages."""
    name = f"vectors {session_id}"
    enqueue("sessions_app.tasks.embed_session", str(session_id), task_name=name)
