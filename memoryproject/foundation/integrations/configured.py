"""Choose the chat model, the transcriber and the WhatsApp providers from the settings.

Each is called through the circuit breaker of its service.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from urllib.parse import urlsplit

from django.conf import settings

from memoryproject.foundation.integrations.context_limit import ContextLimit, SharedContextLimit
from memoryproject.foundation.integrations.llm.base import (
    ChatModel,
    ChatRequest,
    Completion,
    OfflineChatModel,
)
from memoryproject.foundation.integrations.openai_transcriber import Transcriber
from memoryproject.foundation.integrations.retry import do_nothing
from memoryproject.foundation.integrations.whatsapp.base import ConsoleProvider, WhatsAppProvider
from memoryproject.foundation.integrations.whatsapp.posting import trusted
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.foundation.outside_services.breaker import ServiceGuard
from memoryproject.foundation.outside_services.models import ServiceName


def configured_transcriber() -> Transcriber | None:
    """Return the transcriber of recordings, or None if TRANSCRIPTION_MODEL is unset."""
    if not settings.TRANSCRIPTION_MODEL:
        return None
    return _openai_transcriber(
        settings.OPENAI_API_KEY,
        settings.OPENAI_BASE_URL,
        settings.TRANSCRIPTION_MODEL,
        settings.MODEL_TIMEOUT_SECONDS,
    )


@lru_cache(maxsize=4)
def _openai_transcriber(api_key: str, base_url: str, model: str, timeout: float) -> Transcriber:
    from memoryproject.foundation.integrations.openai_transcriber import OpenAITranscriber  # noqa: PLC0415 slow

    guard = service_guard(str(ServiceName.TRANSCRIBER), base_url, model)
    return OpenAITranscriber(api_key, base_url, model, timeout=timeout, guard=guard)


def configured_chat_model(model: str = "") -> ChatModel:
    """Return the chat model of the settings, or the one of this name on its server."""
    if settings.CHAT_MODEL == "openai":
        return LateChatModel(model)
    return OfflineChatModel()


class LateChatModel:
    """The configured model of OpenAI's kind, loaded at its first call.

    A process that takes messages in passes it on and never calls it, and the package needs much
    memory.
    """

    name = "openai"

    def __init__(self, model: str = "") -> None:
        """``model``: its name on the server; by default OPENAI_MODEL."""
        self._model = model

    def complete(
        self, request: ChatRequest, *, before_attempt: Callable[[], None] = do_nothing
    ) -> Completion:
        """See ChatModel.complete."""
        return self.loaded().complete(request, before_attempt=before_attempt)

    def loaded(self) -> ChatModel:
        return _openai_chat(
            settings.OPENAI_API_KEY,
            settings.OPENAI_BASE_URL,
            self._model or settings.OPENAI_MODEL,
            settings.MODEL_TIMEOUT_SECONDS,
        )


@lru_cache(maxsize=16)
def _openai_chat(api_key: str, base_url: str, model: str, timeout: float) -> ChatModel:
    """Return one instance for all turns: it keeps its connections open."""
    from memoryproject.foundation.integrations.llm.openai_chat import OpenAIChatModel  # noqa: PLC0415 slow

    guard = service_guard(str(ServiceName.CHAT_MODEL), base_url, model)
    return OpenAIChatModel(api_key, base_url, model, timeout=timeout, guard=guard)


def configured_context_limit() -> ContextLimit:
    """Return the limit that the configured chat model's server reported."""
    return SharedContextLimit(base_url=settings.OPENAI_BASE_URL, model=settings.OPENAI_MODEL)


def configured_providers() -> dict[str, WhatsAppProvider]:
    """Return the providers by name.

    A provider that isn't configured refuses to send and states which setting is missing.
    """
    found: dict[str, WhatsAppProvider] = {ConsoleProvider.name: ConsoleProvider()}
    for name, record in PROVIDERS.items():
        address = getattr(settings, record.url_setting)
        found[name] = record.connect(guard=service_guard(record.service, address))
    return found


def load_models_early() -> None:
    """Load what the first call of a model or a provider would wait for. Sends no request.

    A later caller reports what is wrong.
    """
    trusted()
    with suppress(ValueError):
        if settings.CHAT_MODEL == "openai":
            from memoryproject.foundation.integrations.llm.openai_chat import load_early  # noqa: PLC0415 slow

            load_early()
            LateChatModel().loaded()
        configured_transcriber()


def service_guard(name: str, url: str, model: str = "") -> ServiceGuard:
    """Return the breaker of a service, which is told apart by its model and host."""
    parts = urlsplit(url)
    host = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
    return ServiceGuard(name, f"{model} at {host}" if model else host)
