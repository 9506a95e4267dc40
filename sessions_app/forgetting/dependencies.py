"""Build the dependencies of forgetting from the settings."""

from uuid import UUID

from memories_app.documents.dependencies import documents_folder
from memoryproject.foundation.process.jobs import enqueue
from sessions_app.forgetting.sweep import ForgetDependencies
from sessions_app.history.dependencies import build_chat_memory, build_transcript_backups


def build_forget_dependencies() -> ForgetDependencies:
    """Return the dependencies of forgetting."""
    return ForgetDependencies(
        chat_memory=build_chat_memory(),
        transcripts=build_transcript_backups(),
        documents=documents_folder(),
    )


def enqueue_forgetting(run_id: UUID) -> None:
    """Enqueue a run of forgetting for a worker."""
    enqueue("sessions_app.tasks.run_forgetting", str(run_id), task_name=f"forget {run_id}")
