"""Build the reader of promises from the settings."""

from uuid import UUID

from django.conf import settings

from memoryproject.foundation.process.jobs import enqueue
from sessions_app.embedding.facade import embedder
from sessions_app.promises.store import PromiseReader


def build_promise_reader() -> PromiseReader:
    return PromiseReader(
        embedder=embedder(),
        memory_enabled=settings.ENABLE_MEMORY_SYSTEM,
        reads_history=settings.LEARN_FROM_HISTORY,
    )


def enqueue_promises(session_id: UUID) -> None:
    """Queue a task that reads the promises in a session's new messages."""
    name = f"promises {session_id}"
    enqueue("sessions_app.tasks.read_promises", str(session_id), task_name=name)
