"""Enqueue sessions for the workers that summarise them."""

from uuid import UUID

from memoryproject.foundation.process.jobs import enqueue
from sessions_app.summaries.summary_store import summary_request


def enqueue_summary(session_id: UUID) -> None:
    """Enqueue a session whose summaries are due."""
    name = f"sum up {session_id}"
    enqueue("sessions_app.tasks.summarize_session", str(session_id), task_name=name)


def enqueue_again(session_id: UUID) -> None:
    """Enqueue a session whose last summary the model is to replace."""
    summary_request(session_id)
    enqueue_summary(session_id)
