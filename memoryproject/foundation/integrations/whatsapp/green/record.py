"""What the product knows of Green API."""

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings

from memoryproject.foundation.integrations.whatsapp.base import ProviderRecord, WebhookRefusedError
from memoryproject.foundation.integrations.whatsapp.green import client, parse
from memoryproject.foundation.outside_services.guards import Guard, no_guard
from memoryproject.foundation.outside_services.models import ServiceName


def _connect(guard_of: Callable[[str], Guard] = no_guard, **how: Any) -> client.GreenProvider:
    return client.GreenProvider(
        api_url=settings.GREEN_API_URL,
        id_instance=settings.GREEN_API_ID_INSTANCE,
        token=settings.GREEN_API_TOKEN,
        guard=guard_of(""),
        **how,
    )


def _verify(headers: Mapping[str, str], _body: bytes | None) -> None:
    expected = settings.GREEN_API_WEBHOOK_TOKEN
    if not parse.verify_token(expected=expected, header=headers.get("Authorization")):
        text = "Authorization is missing or is not GREEN_API_WEBHOOK_TOKEN."
        raise WebhookRefusedError(401, text)


GREEN = ProviderRecord(
    name=client.GreenProvider.name,
    title="Green API",
    service=str(ServiceName.WHATSAPP_GREEN),
    url_setting="GREEN_API_URL",
    number_setting="GREEN_API_ID_INSTANCE",
    key_setting="GREEN_API_TOKEN",
    needed=("GREEN_API_ID_INSTANCE", "GREEN_API_TOKEN", "GREEN_API_WEBHOOK_TOKEN"),
    connect=_connect,
    parse=parse.parse_green,
    verify=_verify,
    # It works as WhatsApp on a phone does, which writes at any time.
    has_window=False,
)
