"""The WhatsApp providers, by name: each is a package with a record."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from memoryproject.foundation.integrations.whatsapp.base import ProviderRecord, words_listed
from memoryproject.foundation.integrations.whatsapp.cloud.record import CLOUD
from memoryproject.foundation.integrations.whatsapp.green.record import GREEN
from memoryproject.foundation.integrations.whatsapp.posting import LOOPBACK

PROVIDERS: dict[str, ProviderRecord] = {record.name: record for record in (CLOUD, GREEN)}


@dataclass(frozen=True)
class ProviderState:
    """What the settings say of a provider.

    ``missing``: what is needed for sending and isn't set; ``demo``: its address is on this machine.
    """

    name: str
    title: str
    missing: list[str]
    demo: bool

    @property
    def configured(self) -> bool:
        return not self.missing


def provider_states() -> list[ProviderState]:
    """Return the state of each provider."""
    found = []
    for record in PROVIDERS.values():
        needed = (record.number_setting, record.key_setting)
        missing = [name for name in needed if not getattr(settings, name)]
        host = urlsplit(getattr(settings, record.url_setting)).hostname
        found.append(ProviderState(record.name, record.title, missing, host in LOOPBACK))
    return found


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
