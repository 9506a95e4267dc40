"""Build the history of conversations, and the backups of their transcripts, from the settings."""

from datetime import timedelta
from pathlib import Path

from django.conf import settings

from memoryproject.foundation.integrations import configured
from sessions_app.embedding.dependencies import enqueue_vectors
from sessions_app.history import chat_memory, strategies
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.models.chats import Limits
from sessions_app.summaries.dependencies import enqueue_summary
from sessions_app.summaries.summarizer import Summarizer, skill_named
from sessions_app.transcript_files.backups import Backups


def build_chat_memory() -> chat_memory.ChatMemoryService:
    """Return the history service with the strategy that CHAT_MEMORY_STRATEGY names."""
    return chat_memory.ChatMemoryService(
        limits=Limits(client=settings.CLIENT_MAX_TOKENS, godfather=settings.GODFATHER_MAX_TOKENS),
        godfather=settings.GODFATHER_PHONE,
        strategy=build_strategy(),
        image_root=settings.DATA_DIR,
        embed=enqueue_vectors,
    )


def build_strategy() -> strategies.MemoryManagementStrategy:
    """Build the strategy for long conversations that CHAT_MEMORY_STRATEGY names."""
    if settings.CHAT_MEMORY_STRATEGY == "none":
        return strategies.NoStrategy()
    # The offline model only recites memories: it can't summarise.
    is_offline = settings.CHAT_MODEL == "offline"
    return strategies.SummarizationStrategy(
        summarizer=Summarizer(
            chat_model=None if is_offline else configured.configured_chat_model(),
            skill=skill_named(settings.SUMMARIZATION_SKILL),
            context_tokens=settings.MAX_CONTEXT_TOKENS or Summarizer.context_tokens,
            context_limit=None if is_offline else configured.configured_context_limit(),
        ),
        summarize_every_n_messages=settings.SUMMARIZE_EVERY_N,
        delete_summarized_messages=settings.DELETE_SUMMARIZED_MESSAGES,
        enqueue=enqueue_summary,
        limits=build_usage_limits(),
    )


def build_transcript_backups() -> Backups:
    """Build the backups of saved transcripts, in DATA_DIR."""
    return Backups(Path(settings.DATA_DIR) / "transcripts")


def transcript_retention() -> timedelta:
    """Return how long a backup of a transcript is kept."""
    return timedelta(days=settings.TRANSCRIPT_BACKUP_DAYS)
