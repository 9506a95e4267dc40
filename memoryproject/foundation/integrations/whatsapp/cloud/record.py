"""What the product knows of the Cloud API."""

import hmac
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings

from memoryproject.foundation.integrations.whatsapp import base
from memoryproject.foundation.integrations.whatsapp.cloud import client, parse
from memoryproject.foundation.outside_services.guards import Guard, no_guard
from memoryproject.foundation.outside_services.models import ServiceName


def _connect(guard_of: Callable[[str], Guard] = no_guard, **how: Any) -> client.CloudProvider:
    first, *others = base.words_listed(settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID) or [""]
    keys = base.keys_by_number(settings.WHATSAPP_CLOUD_ACCESS_TOKEN)
    common = keys.get("", "")
    return client.CloudProvider(
        api_url=settings.WHATSAPP_CLOUD_API_URL,
        phone_number_id=first,
        access_token=keys.get(first, common),
        # A token that one number lost doesn't stop the others.
        others={number: (keys.get(number, common), guard_of(number)) for number in others},
        guard=guard_of(""),
        business_account_id=settings.WHATSAPP_BUSINESS_ACCOUNT_ID,
        **how,
    )


def _verify(headers: Mapping[str, str], body: bytes | None) -> None:
    secret = settings.WHATSAPP_CLOUD_APP_SECRET
    header = headers.get("X-Hub-Signature-256")
    if body is None:
        is_ours = bool(secret) and parse.is_signature(header)
    else:
        is_ours = parse.verify_signature(secret=secret, body=body, header=header)
    if not is_ours:
        text = "X-Hub-Signature-256 is missing or does not match the body."
        raise base.WebhookRefusedError(401, text)


def _handshake(query: Mapping[str, str]) -> str:
    """Return the bare challenge, as Meta expects it."""
    expected = settings.WHATSAPP_CLOUD_VERIFY_TOKEN
    given = query.get("hub.verify_token", "")
    known = bool(expected) and hmac.compare_digest(given.encode(), expected.encode())
    if query.get("hub.mode") != "subscribe" or not known:
        raise base.WebhookRefusedError(403, "hub.verify_token is not WHATSAPP_CLOUD_VERIFY_TOKEN.")
    challenge = query.get("hub.challenge", "")
    if not challenge:
        raise base.WebhookRefusedError(400, "hub.challenge is missing.")
    return challenge


CLOUD = base.ProviderRecord(
    name=client.CloudProvider.name,
    title="WhatsApp Cloud API",
    service=str(ServiceName.WHATSAPP_CLOUD),
    url_setting="WHATSAPP_CLOUD_API_URL",
    number_setting="WHATSAPP_CLOUD_PHONE_NUMBER_ID",
    key_setting="WHATSAPP_CLOUD_ACCESS_TOKEN",
    needed=(
        "WHATSAPP_CLOUD_APP_SECRET",
        "WHATSAPP_CLOUD_VERIFY_TOKEN",
        "WHATSAPP_CLOUD_ACCESS_TOKEN",
        "WHATSAPP_CLOUD_PHONE_NUMBER_ID",
    ),
    connect=_connect,
    parse=parse.parse_cloud,
    verify=_verify,
    handshake=_handshake,
    sends_templates=True,
)
