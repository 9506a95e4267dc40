"""The dependencies of a turn; the entry point that runs it chooses them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from uuid import UUID

from memoryproject.foundation.integrations.context_limit import ContextLimit
from memoryproject.foundation.integrations.documents.sniffing import DocumentLimits, TextExtractor
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.integrations.llm.base import ChatModel
from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from memoryproject.foundation.integrations.openai_transcriber import Transcriber
from memoryproject.foundation.integrations.whatsapp.base import WhatsAppProvider
from sessions_app.conversations.history_queries import profile_current
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.limits.intake import UsageLimits
from sessions_app.models import AssistantProfile, OutboundPart, Turn
from sessions_app.transcript_files.backups import Backups
from sessions_app.turns import statuses, turn_claims


@dataclass(frozen=True)
class AnswerRules:
    """The settings that affect an answer. ``burst_gap``: see ``bursts``; 0: off.

    ``nearest``: see ``recall``; for a model, which tells whether they answer the question.
    """

    longterm_enabled: bool = True
    top_k: int = 5
    min_similarity: float = 0.7
    nearest: int = 0
    history_max_messages: int | None = None
    max_context_tokens: int | None = None
    max_reply_tokens: int | None = None
    max_reply_parts: int = 4
    model_tools: bool = True
    max_answer_age: timedelta = timedelta(hours=24)
    deadline: timedelta = timedelta(seconds=60)
    time_zone: str = "UTC"
    cards_in_prompt: int = 0
    person_in_prompt: bool = False
    sees_pictures: bool = False
    burst_gap: timedelta = timedelta(0)


@dataclass(frozen=True)
class FileDependencies:
    """The readers of documents and recordings.

    ``folder``: the place of their files during the work. ``transcriber`` None: recordings aren't
    transcribed.
    """

    folder: Path
    extractor: TextExtractor
    limits: DocumentLimits = field(default_factory=DocumentLimits)
    transcriber: Transcriber | None = None


@dataclass(frozen=True)
class Dependencies:
    """The models and providers, the memory of conversations, and the rules.

    ``context_limit`` remembers how much the chat model reads. Without ``files`` documents and
    recordings aren't read. ``transcripts``: the backups that forgetting sweeps. ``learn`` hands a
    chat to a worker that learns from its turns; without it nothing is learned automatically.
    ``media``: the storage of the files of messages; without it no file is sent. ``enqueue`` hands a
    chat to a worker; without it only the sweep takes up what an outage has left.
    """

    chat_model: ChatModel
    embedder: Embedder
    providers: Mapping[str, WhatsAppProvider]
    chat_memory: ChatMemoryService = field(default_factory=ChatMemoryService)
    rules: AnswerRules = field(default_factory=AnswerRules)
    context_limit: ContextLimit | None = None
    storage_notices: statuses.StorageNotices | None = None
    files: FileDependencies | None = None
    transcripts: Backups | None = None
    learn: Callable[[UUID], None] | None = None
    limits: UsageLimits = field(default_factory=UsageLimits)
    media: MediaStorage | None = None
    enqueue: Callable[[UUID], object] | None = None
    sleep: Callable[[float], None] = time.sleep


@dataclass
class TurnWork:
    """A turn that is being answered: the right to do it, and what that depends on.

    ``parts``: those of an answer that was stored just now.
    """

    turn: Turn
    lease: turn_claims.TurnLease
    dependencies: Dependencies
    parts: Sequence[OutboundPart] = ()

    @cached_property
    def profile(self) -> AssistantProfile:
        """The assistant's profile, read once for an answer."""
        return profile_current()
