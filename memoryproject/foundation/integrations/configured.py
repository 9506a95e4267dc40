"""Choose the chat model, the transcriber and the WhatsApp providers from the settings."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings

from memoryproject.foundation.integrations.llm.base import ChatModel
from memoryproject.foundation.integrations.llm.offline import OfflineChatModel
from memoryproject.foundation.integrations.speech.base import Transcriber
from memoryproject.foundation.integrations.whatsapp.base import WhatsAppProvider
from memoryproject.foundation.integrations.whatsapp.cloud.client import CloudProvider
from memoryproject.foundation.integrations.whatsapp.console import ConsoleProvider
from memoryproject.foundation.integrations.whatsapp.green.client import GreenProvider


def configured_transcriber() -> Transcriber | None:
    """Return the transcriber of recordings, or None if TRANSCRIPTION_MODEL is unset."""
    if not settings.TRANSCRIPTION_MODEL:
        return None
    return _openai_transcriber(
        settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL, settings.TRANSCRIPTION_MODEL
    )


@lru_cache(maxsize=4)
def _openai_transcriber(api_key: str, base_url: str, model: str) -> Transcriber:
    from memoryproject.foundation.integrations.speech.openai_transcriber import OpenAITranscriber  # noqa: PLC0415 slow

    return OpenAITranscriber(api_key=api_key, base_url=base_url, model=model)


def configured_chat_model() -> ChatModel:
    if settings.CHAT_MODEL == "openai":
        return _openai_chat(
            settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL, settings.OPENAI_MODEL
        )
    return OfflineChatModel()


@lru_cache(maxsize=4)
def _openai_chat(api_key: str, base_url: str, model: str) -> ChatModel:
    """Return one instance for all turns: it keeps its connections open."""
    from memoryproject.foundation.integrations.llm.openai_chat import OpenAIChatModel  # noqa: PLC0415 slow

    return OpenAIChatModel(api_key=api_key, base_url=base_url, model=model)


def configured_providers() -> dict[str, WhatsAppProvider]:
    """Return the providers by name.

    A provider that isn't configured refuses to send and states which setting is missing.
    """
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
