"""Chooses the chat model, the embedder and the providers by the settings.

Only edges (webhooks, tasks, commands) call this; services are handed what it makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django_q.tasks import async_task

from memories_app.services.tombstones import is_forgotten
from memoryproject.hooks.sending import HookTools
from memoryproject.integrations.documents.base import DocumentLimits
from memoryproject.integrations.documents.sandbox import SandboxExtractor
from memoryproject.integrations.hooks.addresses import AddressRules
from memoryproject.integrations.hooks.http import HttpPoster
from memoryproject.integrations.llm.base import ChatModel
from memoryproject.integrations.llm.offline import OfflineChatModel
from memoryproject.integrations.speech.base import Transcriber
from memoryproject.integrations.whatsapp.base import WhatsAppProvider
from memoryproject.integrations.whatsapp.cloud.client import CloudProvider
from memoryproject.integrations.whatsapp.console import ConsoleProvider
from memoryproject.integrations.whatsapp.green.client import GreenProvider
from memoryproject.lib.shared_times import SharedTimes
from sessions_app.chat_selectors import chat_name
from sessions_app.embedding import embedder as embedder
from sessions_app.prompts.skills import skill_named
from sessions_app.roles import Limits
from sessions_app.services.chat_memory import ChatMemoryService
from sessions_app.services.extraction.extract import Extractor
from sessions_app.services.forget.carry_out import ForgetTools
from sessions_app.services.hand_reply import OwnNumber
from sessions_app.services.intake import IntakeRules
from sessions_app.services.storage_notices import StorageNotices
from sessions_app.services.strategies import (
    MemoryManagementStrategy,
    NoStrategy,
    SummarizationStrategy,
)
from sessions_app.services.summaries.summarizer import Summarizer
from sessions_app.services.tools import AnswerRules, FileTools, Tools
from sessions_app.services.transcripts.backup import Backups
from sessions_app.services.transcripts.check import Progress
from sessions_app.services.transcripts.save import SaveTools


def intake_rules() -> IntakeRules:
    return IntakeRules(
        memory_enabled=settings.ENABLE_MEMORY_SYSTEM,
        chat_memory=chat_memory(),
        session_timeout=timedelta(hours=settings.SESSION_TIMEOUT_HOURS),
        max_answer_age=timedelta(hours=settings.MAX_ANSWER_AGE_HOURS),
        group_policy=settings.GROUP_POLICY,
    )


def answer_rules() -> AnswerRules:
    return AnswerRules(
        longterm_enabled=settings.LONGTERM_ENABLED,
        top_k=settings.RECALL_TOP_K,
        min_similarity=settings.RECALL_MIN_SIMILARITY,
        history_max_messages=settings.HISTORY_MAX_MESSAGES,
        max_context_tokens=settings.MAX_CONTEXT_TOKENS,
        max_answer_age=timedelta(hours=settings.MAX_ANSWER_AGE_HOURS),
        time_zone=settings.BUSINESS_TIME_ZONE,
        cards_in_prompt=settings.CARDS_IN_PROMPT,
    )


def tools() -> Tools:
    """All that a turn needs."""
    return Tools(
        chat_model=chat_model(),
        embedder=embedder(),
        providers=providers(),
        chat_memory=chat_memory(),
        rules=answer_rules(),
        storage_notices=storage_notices(),
        files=file_tools(),
        transcripts=transcript_backups(),
        learn=enqueue_learning if learns() else None,
    )


def learns() -> bool:
    """Whether facts are learned from what people say. The offline model only recites."""
    return (
        settings.EXTRACT_MEMORIES and settings.LONGTERM_ENABLED and settings.CHAT_MODEL != "offline"
    )


def extractor() -> Extractor | None:
    """What learns; None where nothing is to be learned."""
    if not learns():
        return None
    return Extractor(
        chat_model=chat_model(),
        embedder=embedder(),
        forgotten=_is_forgotten,
        min_confidence=settings.EXTRACTION_MIN_CONFIDENCE,
        time_zone=settings.BUSINESS_TIME_ZONE,
        memory_enabled=settings.ENABLE_MEMORY_SYSTEM,
    )


def _is_forgotten(content: str, scope: str) -> bool:
    return is_forgotten(content=content, scope=scope)


def document_limits() -> DocumentLimits:
    return DocumentLimits(
        size=settings.DOCUMENT_MAX_MB * 1024 * 1024, pages=settings.DOCUMENT_MAX_PAGES
    )


def documents_folder() -> Path:
    """Where documents lie until they are read."""
    return Path(settings.DATA_DIR) / "documents"


def file_tools() -> FileTools:
    limits = document_limits()
    return FileTools(
        folder=documents_folder(),
        extractor=SandboxExtractor(limits),
        limits=limits,
        transcriber=transcriber(),
    )


def transcriber() -> Transcriber | None:
    """Who listens to recordings; nobody where TRANSCRIPTION_MODEL is unset."""
    if not settings.TRANSCRIPTION_MODEL:
        return None
    return _openai_transcriber(
        settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL, settings.TRANSCRIPTION_MODEL
    )


@lru_cache(maxsize=4)
def _openai_transcriber(api_key: str, base_url: str, model: str) -> Transcriber:
    from memoryproject.integrations.speech.openai_transcriber import (  # noqa: PLC0415 slow
        OpenAITranscriber,
    )

    return OpenAITranscriber(api_key=api_key, base_url=base_url, model=model)


def forget_tools() -> ForgetTools:
    """With what is forgotten."""
    return ForgetTools(
        embedder=embedder(),
        chat_memory=chat_memory(),
        transcripts=transcript_backups(),
        documents=documents_folder(),
    )


def transcript_backups() -> Backups:
    return Backups(Path(settings.DATA_DIR) / "transcripts")


def transcript_texts() -> Path:
    """Where texts that came over HTTP lie while they are saved."""
    return Path(settings.DATA_DIR) / "transcript-texts"


def transcript_retention() -> timedelta:
    return timedelta(days=settings.TRANSCRIPT_BACKUP_DAYS)


def transcript_tools(*, progress: Progress) -> SaveTools:
    """With what transcripts are saved."""
    return SaveTools(
        rules=intake_rules(),
        backups=transcript_backups(),
        keep=transcript_retention(),
        progress=progress,
    )


def chat_memory() -> ChatMemoryService:
    """The history of conversations, managed as CHAT_MEMORY_STRATEGY says."""
    return ChatMemoryService(
        limits=Limits(client=settings.CLIENT_MAX_TOKENS, godfather=settings.GODFATHER_MAX_TOKENS),
        godfather=settings.GODFATHER_PHONE,
        strategy=strategy(),
        image_root=settings.DATA_DIR,
        embed=enqueue_vectors,
    )


def strategy() -> MemoryManagementStrategy:
    if settings.CHAT_MEMORY_STRATEGY == "none":
        return NoStrategy()
    return SummarizationStrategy(
        summarizer=Summarizer(
            # The offline model only recites what is remembered: it can't sum up.
            chat_model=None if settings.CHAT_MODEL == "offline" else chat_model(),
            skill=skill_named(settings.SUMMARIZATION_SKILL),
            context_tokens=settings.MAX_CONTEXT_TOKENS or Summarizer.context_tokens,
        ),
        summarize_every_n_messages=settings.SUMMARIZE_EVERY_N,
        delete_summarized_messages=settings.DELETE_SUMMARIZED_MESSAGES,
        enqueue=enqueue_summary,
    )


def chat_model() -> ChatModel:
    if settings.CHAT_MODEL == "openai":
        return _openai_chat(
            settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL, settings.OPENAI_MODEL
        )
    return OfflineChatModel()


@lru_cache(maxsize=4)
def _openai_chat(api_key: str, base_url: str, model: str) -> ChatModel:
    """One for all turns: it keeps its connections open."""
    from memoryproject.integrations.llm.openai_chat import OpenAIChatModel  # noqa: PLC0415 slow

    return OpenAIChatModel(api_key=api_key, base_url=base_url, model=model)


def providers() -> dict[str, WhatsAppProvider]:
    """By name; one that isn't configured refuses to send and says which setting is missing."""
    return {
        "cloud": CloudProvider(
            api_url=settings.WHATSAPP_CLOUD_API_URL,
            phone_number_id=settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID,
            access_token=settings.WHATSAPP_CLOUD_ACCESS_TOKEN,
        ),
        "green": GreenProvider(
            api_url=settings.GREEN_API_URL,
            id_instance=settings.GREEN_API_ID_INSTANCE,
            token=settings.GREEN_API_TOKEN,
        ),
        "console": ConsoleProvider(),
    }


def number_for_others() -> OwnNumber:
    """What WHATSAPP_PROVIDER names, for chats that came by neither provider."""
    numbers = {
        "cloud": settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID,
        "green": settings.GREEN_API_ID_INSTANCE,
    }
    provider = settings.WHATSAPP_PROVIDER
    return OwnNumber(provider, numbers.get(provider, ""))


@lru_cache(maxsize=1)
def storage_notices() -> StorageNotices:
    """Made before the disk is full, since it needs a file of its own."""
    executor = ThreadPoolExecutor(max_workers=2, thread_name_prefix="storage-notices")
    told = SharedTimes(settings.DATA_DIR / "storage-notices.times")
    return StorageNotices(providers(), executor, told)


def enqueue_chat(chat_id: UUID) -> None:
    """Let a worker answer what waits in this chat."""
    async_task("sessions_app.tasks.answer_chat", str(chat_id), task_name=f"answer {chat_id}"[:100])


def enqueue_summary(session_id: UUID) -> None:
    """Let a worker make the summaries that are due in this session."""
    name = f"sum up {session_id}"
    async_task("sessions_app.tasks.summarize_session", str(session_id), task_name=name)


def enqueue_learning(chat_id: UUID) -> None:
    """Let a worker learn from this chat's turns."""
    name = f"learn from {chat_id}"
    async_task("sessions_app.tasks.learn_from_chat", str(chat_id), task_name=name)


def enqueue_document(document_id: UUID) -> None:
    """Let a worker read this document."""
    name = f"read {document_id}"
    async_task("sessions_app.tasks.read_document", str(document_id), task_name=name)


def enqueue_vectors(session_id: UUID) -> None:
    """Let a worker make the vectors that this session's messages lack."""
    name = f"vectors {session_id}"
    async_task("sessions_app.tasks.embed_session", str(session_id), task_name=name)


def enqueue_cards(session_ids: Sequence[UUID]) -> None:
    """Let a worker make the cards of these sessions."""
    keys = [str(key) for key in session_ids]
    async_task("sessions_app.tasks.make_cards", keys, task_name=f"cards of {len(keys)} sessions")


def enqueue_forgetting(run_id: UUID) -> None:
    """Let a worker forget what was chosen."""
    async_task("sessions_app.tasks.carry_out_forgetting", str(run_id), task_name=f"forget {run_id}")


def enqueue_webhooks(endpoint_id: int) -> None:
    """Let a worker send what is due to this endpoint."""
    name = f"webhooks to endpoint {endpoint_id}"
    async_task("sessions_app.tasks.send_webhooks", endpoint_id, task_name=name)


def hook_rules() -> AddressRules:
    """Which addresses webhooks may be posted to."""
    return AddressRules.of(
        settings.WEBHOOKS_PRIVATE_NETWORKS, allow_http=settings.WEBHOOKS_ALLOW_HTTP
    )


def hook_tools() -> HookTools:
    """With what webhooks are sent."""
    return HookTools(
        poster=HttpPoster(hook_rules()),
        chat_name=chat_name,
        disable_after=timedelta(days=settings.WEBHOOKS_DISABLE_AFTER_DAYS),
    )
