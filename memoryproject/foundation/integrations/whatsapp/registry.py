"""The WhatsApp providers, by name: each is a package with a record."""

from __future__ import annotations

from memoryproject.foundation.integrations.whatsapp.base import ProviderRecord
from memoryproject.foundation.integrations.whatsapp.cloud.record import CLOUD
from memoryproject.foundation.integrations.whatsapp.green.record import GREEN

PROVIDERS: dict[str, ProviderRecord] = {record.name: record for record in (CLOUD, GREEN)}
