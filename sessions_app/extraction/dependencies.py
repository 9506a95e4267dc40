"""Build the dependencies of memory extraction from the settings."""

from uuid import UUID

from django.conf import settings

from memoryproject.foundation.integrations.configured import configured_chat_model
from memoryproject.foundation.process.jobs import enqueue
from sessions_app.embedding.facade import embedder as embedder
from sessions_app.extraction.extract import Extractor
from sessions_app.limits.dependencies import build_usage_limits


def is_learning_enabled() -> bool:
    """Return whether facts are learned from messages. The offline model only recites."""
    return (
        settings.EXTRACT_MEMORIES and settings.LONGTERM_ENABLED and settings.CHAT_MODEL != "offline"
    )


def build_extractor() -> Extractor | None:
    """Return the extractor; None if is_learning_enabled returns False."""
    if not is_learning_enabled():
        return None
    return Extractor(
        chat_model=configured_chat_model(),
        embedder=embedder(),
        min_confidence=settings.EXTRACTION_MIN_CONFIDENCE,
        time_zone=settings.BUSINESS_TIME_ZONE,
        memory_enabled=settings.ENABLE_MEMORY_SYSTEM,
        godfather=settings.GODFATHER_PHONE,
        limits=build_usage_limits(),
    )


def enqueue_learning(chat_id: UUID) -> None:
    """Enqueue a chat whose turns should be learned from."""
    name = f"learn from {chat_id}"
    enqueue("sessions_app.tasks.learn_from_chat", str(chat_id), task_name=name)
