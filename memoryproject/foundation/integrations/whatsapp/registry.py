"""The WhatsApp providers, by name: each is a package with a record."""

from __future__ import annotations

from django.conf import settings

from memoryproject.foundation.integrations.whatsapp.base import ProviderRecord, words_listed
from memoryproject.foundation.integrations.whatsapp.cloud.record import CLOUD
from memoryproject.foundation.integrations.whatsapp.green.record import GREEN

PROVIDERS: dict[str, ProviderRecord] = {record.name: record for record in (CLOUD, GREEN)}


def own_numbers(provider: str) -> list[str]:
    """Return the ids of our numbers, or of our instance, at a provider; the first is the default.

    Empty where none is set, and for a provider that sends nothing.
    """
    record = PROVIDERS.get(provider)
    return words_listed(getattr(settings, record.number_setting)) if record else []


def numbers_if_several() -> list[str]:
    """Return the ids of our numbers at the providers that have several."""
    found = (own_numbers(provider) for provider in PROVIDERS)
    return [number for numbers in found if len(numbers) > 1 for number in numbers]
