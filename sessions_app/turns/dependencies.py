"""Build the dependencies of answering a turn from the settings."""

from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache

from django.conf import settings

from memories_app.documents.dependencies import build_document_limits, documents_folder
from memoryproject.foundation.integrations import configured
from memoryproject.foundation.integrations.documents.sandbox import SandboxExtractor
from memoryproject.foundation.integrations.media_storage import storage_choice
from memoryproject.foundation.process import jobs, storage
from sessions_app.embedding.dependencies import enqueue_vectors
from sessions_app.embedding.facade import embedder as embedder
from sessions_app.extraction.dependencies import enqueue_learning, is_learning_enabled
from sessions_app.history.dependencies import build_chat_memory, build_transcript_backups
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.turns.queue import Answerer, answer_soon
from sessions_app.turns.statuses import StorageNotices
from sessions_app.turns.turn_dependencies import AnswerRules, Dependencies, FileDependencies


def max_answer_age() -> timedelta:
    """Return how old a message may be that is still answered, by the assistant or by staff."""
    return timedelta(hours=settings.MAX_ANSWER_AGE_HOURS)


def build_answer_rules() -> AnswerRules:
    """Build the rules of answers from the settings."""
    return AnswerRules(
        longterm_enabled=settings.LONGTERM_ENABLED,
        top_k=settings.RECALL_TOP_K,
        min_similarity=settings.RECALL_MIN_SIMILARITY,
        nearest=settings.RECALL_NEAREST,
        history_max_messages=settings.HISTORY_MAX_MESSAGES,
        max_context_tokens=settings.MAX_CONTEXT_TOKENS,
        max_reply_tokens=settings.MAX_REPLY_TOKENS or None,
        max_reply_parts=settings.MAX_REPLY_PARTS,
        model_tools=settings.MODEL_TOOLS,
        max_answer_age=max_answer_age(),
        deadline=timedelta(seconds=settings.ANSWER_DEADLINE_SECONDS),
        time_zone=settings.BUSINESS_TIME_ZONE,
        cards_in_prompt=settings.CARDS_IN_PROMPT,
        person_in_prompt=settings.PERSON_IN_PROMPT,
        sees_pictures=settings.MODEL_SEES_PICTURES,
        burst_gap=timedelta(seconds=settings.TURN_DEBOUNCE_SECONDS),
    )


def build_turn_dependencies() -> Dependencies:
    """Build all the dependencies of a turn."""
    return Dependencies(
        chat_model=configured.configured_chat_model(),
        embedder=embedder(),
        providers=configured.configured_providers(),
        chat_memory=build_chat_memory(),
        rules=build_answer_rules(),
        context_limit=configured.configured_context_limit(),
        storage_notices=build_storage_notices(),
        files=build_file_dependencies(),
        transcripts=build_transcript_backups(),
        learn=enqueue_learning if is_learning_enabled() else None,
        limits=build_usage_limits(),
        media=storage_choice.configured_media_storage(),
        enqueue=answer_soon,
    )


def build_file_dependencies() -> FileDependencies:
    """Build what reading documents and recordings depends on."""
    limits = build_document_limits()
    return FileDependencies(
        folder=documents_folder(),
        extractor=SandboxExtractor(limits),
        limits=limits,
        transcriber=configured.configured_transcriber(),
    )


@lru_cache(maxsize=1)
def build_storage_notices() -> StorageNotices:
    """Build the storage notices.

    They need a file of their own, so this must run before the disk is full.
    """
    executor = jobs.ConnectionClosingExecutor(max_workers=2, thread_name_prefix="storage-notices")
    notified = storage.SharedTimes(settings.DATA_DIR / "storage-notices.times")
    return StorageNotices(configured.configured_providers, executor, notified)


def build_answerer(*, threads: int, tend: Callable[[], object]) -> Answerer:
    """Build the program that answers."""
    return Answerer(
        threads=threads,
        godfather=lambda: settings.GODFATHER_PHONE,
        dependencies=build_turn_dependencies,
        embed=enqueue_vectors,
        tend=tend,
        debounce=timedelta(seconds=settings.TURN_DEBOUNCE_SECONDS),
    )
