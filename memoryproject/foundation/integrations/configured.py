"""Choose the chat model, the transcriber and the WhatsApp providers from the settings.

Each is called through the circuit breaker of its service.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings

from memoryproject.foundation.integrations.context_limit import ContextLimit, SharedContextLimit
from memoryproject.foundation.integrations.llm import base as llm
from memoryproject.foundation.integrations.openai_transcriber import Transcriber
from memoryproject.foundation.integrations.retry import DELAYS, do_nothing
from memoryproject.foundation.integrations.whatsapp.base import ConsoleProvider, WhatsAppProvider
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.foundation.outside_services.breaker import ServiceGuard, SharedTraits
from memoryproject.foundation.outside_services.models import ServiceName

if TYPE_CHECKING:
    from memoryproject.foundation.integrations.llm.openai_api import OpenAIConnection

OPENAIS_OWN = "api.openai.com"


@dataclass(frozen=True)
class ModelServer:
    """A server of models, as the settings name it. ``headers``: pairs of name and value."""

    url: str
    key: str
    headers: tuple[tuple[str, str], ...] = ()
    api_version: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """Return what each client of it takes beside key and address."""
        return {"headers": self.headers, "api_version": self.api_version}

    @property
    def needs_key(self) -> bool:
        """Whether it has no key and is OpenAI's own, which needs one."""
        return not self.key and OPENAIS_OWN in self.url


def model_server(settings_of: str = "", values: Any = settings) -> ModelServer:
    """Return the server of EMBEDDING, TRANSCRIPTION or OPENAI_FALLBACK, by default the common one.

    What isn't set for it is that of the common one. Headers are for the common server alone.
    """
    common = values.OPENAI_BASE_URL
    url = settings_of and getattr(values, f"{settings_of}_BASE_URL") or common
    key = settings_of and getattr(values, f"{settings_of}_API_KEY") or values.OPENAI_API_KEY
    if url != common:
        return ModelServer(url, key)
    headers = tuple(values.MODEL_HEADERS.items())
    return ModelServer(url, key, headers, values.OPENAI_API_VERSION)


def configured_transcriber() -> Transcriber | None:
    """Return the transcriber of recordings, or None if TRANSCRIPTION_MODEL is unset."""
    if not settings.TRANSCRIPTION_MODEL:
        return None
    return _openai_transcriber(
        model_server("TRANSCRIPTION"), settings.TRANSCRIPTION_MODEL, settings.MODEL_TIMEOUT_SECONDS
    )


@lru_cache(maxsize=4)
def _openai_transcriber(server: ModelServer, model: str, timeout: float) -> Transcriber:
    from memoryproject.foundation.integrations.openai_transcriber import OpenAITranscriber  # noqa: PLC0415 slow

    guard = service_guard(str(ServiceName.TRANSCRIBER), server.url, model)
    return OpenAITranscriber(
        server.key, server.url, model, timeout=timeout, guard=guard, **server.options
    )


def configured_chat_model(model: str = "") -> llm.ChatModel:
    """Return the chat model of the settings, or the one of this name on its server."""
    if settings.CHAT_MODEL == "openai":
        return LateChatModel(model)
    return llm.OfflineChatModel()


class LateChatModel:
    """The configured model of OpenAI's kind, loaded at its first call.

    A process that takes messages in passes it on and never calls it, and the package needs much
    memory.
    """

    name = "openai"

    def __init__(self, model: str = "") -> None:
        """``model``: its name on the server; by default OPENAI_MODEL, with its fallback."""
        self._model = model

    def complete(
        self, request: llm.ChatRequest, *, before_attempt: Callable[[], None] = do_nothing
    ) -> llm.Completion:
        """See ChatModel.complete."""
        return self.loaded().complete(request, before_attempt=before_attempt)

    def loaded(self) -> llm.ChatModel:
        extra = json.dumps(settings.MODEL_EXTRA_BODY)
        timeout = settings.MODEL_TIMEOUT_SECONDS
        first = self._model or settings.OPENAI_MODEL
        fallback = "" if self._model else settings.OPENAI_FALLBACK_MODEL
        if not fallback:
            return _openai_chat(model_server(), first, timeout, extra, DELAYS)
        return llm.FallbackChatModel(
            _openai_chat(model_server(), first, timeout, extra, DELAYS[:1]),
            _openai_chat(model_server("OPENAI_FALLBACK"), fallback, timeout, "{}", DELAYS),
        )


@lru_cache(maxsize=16)
def _openai_chat(
    server: ModelServer, model: str, timeout: float, extra_body: str, delays: tuple[float, ...]
) -> llm.ChatModel:
    """Return one instance for all turns: it keeps its connections open."""
    from memoryproject.foundation.integrations.llm.openai_chat import OpenAIChatModel  # noqa: PLC0415 slow

    name = str(ServiceName.CHAT_MODEL)
    return OpenAIChatModel(
        server.key,
        server.url,
        model,
        timeout=timeout,
        delays=delays,
        guard=service_guard(name, server.url, model),
        traits=SharedTraits(name, service_target(server.url, model)),
        **server.options,
        extra_body=json.loads(extra_body),
    )


@lru_cache(maxsize=4)
def forwarding(server: ModelServer, timeout: float) -> OpenAIConnection:
    """Return the connection that passes on what other programs ask a model's server."""
    from memoryproject.foundation.integrations.llm.openai_api import OpenAIConnection  # noqa: PLC0415 slow

    return OpenAIConnection(server.key, server.url, timeout=timeout, **server.options)


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
        found[name] = record.connect(guard_of=partial(service_guard, record.service, address))
    return found


def service_guard(name: str, url: str, model: str = "") -> ServiceGuard:
    """Return the breaker of a service, which is told apart by its model, or number, and host."""
    return ServiceGuard(name, service_target(url, model))


def service_target(url: str, model: str = "") -> str:
    """Return what tells services of one name apart: the model and the host."""
    parts = urlsplit(url)
    host = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
    return f"{model} at {host}" if model else host
