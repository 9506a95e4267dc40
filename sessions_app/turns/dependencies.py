"""Build the dependencies of answering a turn from the settings."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from uuid import UUID

from django.conf import settings

from memories_app.documents.dependencies import build_document_limits, documents_folder
from memoryproject.foundation.integrations.configured import (
    configured_chat_model,
    configured_context_limit,
    configured_providers,
    configured_transcriber,
)
from memoryproject.foundation.integrations.documents.sandbox import SandboxExtractor
from memoryproject.foundation.integrations.media_storage.storage_choice import (
    configured_media_storage,
)
from memoryproject.foundation.process.connection_closing import ConnectionClosingExecutor
from memoryproject.foundation.process.lanes import ANSWERS, COMMANDS, enqueue, with_commit
from memoryproject.foundation.process.shared_times import SharedTimes
from sessions_app.embedding.facade import embedder as embedder
from sessions_app.extraction.dependencies import enqueue_learning, is_learning_enabled
from sessions_app.history.dependencies import build_chat_memory
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.transcript_files.dependencies import build_transcript_backups
from sessions_app.turns.queue import next_needs_model
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
        history_max_messages=settings.HISTORY_MAX_MESSAGES,
        max_context_tokens=settings.MAX_CONTEXT_TOKENS,
        max_reply_tokens=settings.MAX_REPLY_TOKENS or None,
        max_answer_age=max_answer_age(),
        deadline=timedelta(seconds=settings.ANSWER_DEADLINE_SECONDS),
        time_zone=settings.BUSINESS_TIME_ZONE,
        cards_in_prompt=settings.CARDS_IN_PROMPT,
        sees_pictures=settings.MODEL_SEES_PICTURES,
    )


def build_turn_dependencies() -> Dependencies:
    """Build all the dependencies of a turn."""
    return Dependencies(
        chat_model=configured_chat_model(),
        embedder=embedder(),
        providers=configured_providers(),
        chat_memory=build_chat_memory(),
        rules=build_answer_rules(),
        context_limit=configured_context_limit(),
        storage_notices=build_storage_notices(),
        files=build_file_dependencies(),
        transcripts=build_transcript_backups(),
        learn=enqueue_learning if is_learning_enabled() else None,
        limits=build_usage_limits(),
        media=configured_media_storage(),
        enqueue=enqueue_chat,
    )


def build_file_dependencies() -> FileDependencies:
    """Build what reading documents and recordings depends on."""
    limits = build_document_limits()
    return FileDependencies(
        folder=documents_folder(),
        extractor=SandboxExtractor(limits),
        limits=limits,
        transcriber=configured_transcriber(),
    )


@lru_cache(maxsize=1)
def build_storage_notices() -> StorageNotices:
    """Build the storage notices.

    They need a file of their own, so this must run before the disk is full.
    """
    executor = ConnectionClosingExecutor(max_workers=2, thread_name_prefix="storage-notices")
    notified = SharedTimes(settings.DATA_DIR / "storage-notices.times")
    return StorageNotices(configured_providers(), executor, notified)


def enqueue_chat(chat_id: UUID) -> None:
    """Enqueue the chat so that a worker answers its waiting turns.

    A turn that needs no model doesn't queue behind those that wait for one.
    """
    if next_needs_model(chat_id):
        enqueue_answers(chat_id)
    else:
        name = f"command {chat_id}"
        enqueue("sessions_app.tasks.answer_commands", str(chat_id), lane=COMMANDS, task_name=name)


def enqueue_with_commit(chat_id: UUID) -> None:
    """Enqueue the chat with the open transaction."""
    with_commit(lambda: enqueue_chat(chat_id))


def enqueue_asking_with_commit(chat_id: UUID) -> None:
    """Enqueue the chat with the open transaction, which stores a turn that asks a model.

    What the chat's oldest turn needs isn't looked up: that one has been enqueued itself.
    """
    with_commit(lambda: enqueue_answers(chat_id))


def enqueue_answers(chat_id: UUID) -> None:
    """Enqueue the chat for the workers that may ask the chat model."""
    name = f"answer {chat_id}"
    enqueue("sessions_app.tasks.answer_chat", str(chat_id), lane=ANSWERS, task_name=name)
