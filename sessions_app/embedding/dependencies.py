"""Queue the texts whose vectors workers are to make."""

from uuid import UUID

from memoryproject.foundation.process.jobs import enqueue


def enqueue_vectors(session_id: UUID, before: int | None = None) -> None:
    """Queue a task that makes the missing vectors of this session's messages.

    before: only of those with a smaller order number.
    """
    name = f"vectors {session_id}"
    earlier = () if before is None else (before,)
    enqueue("sessions_app.tasks.embed_session", str(session_id), *earlier, task_name=name)


def enqueue_memory_vectors() -> None:
    """Queue a task that makes the vectors that memories wait for."""
    enqueue("sessions_app.tasks.embed_memories", task_name="vectors of memories")
