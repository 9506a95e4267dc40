"""Build the body and the headers of a delivery."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from uuid import UUID

from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from memoryproject.foundation.outgoing_webhooks.signing import signature
from memoryproject.foundation.text.iso_times import iso_utc

# Returns the name under which integrators know a chat; None if the chat is gone.
ChatName = Callable[[UUID], str | None]


def body_of(delivery: WebhookDelivery, chat_name: ChatName) -> bytes:
    """Return the payload.

    The chat's name, which may be a phone number, is looked up now. No delivery stores it, and a
    forgotten chat has none.
    """
    chat_id = delivery.chat_id
    data = {
        **delivery.data,
        "whatsapp_chat": None if chat_id is None else chat_name(chat_id),
    }
    payload = {
        "type": delivery.event_type,
        "timestamp": iso_utc(delivery.occurred_at),
        "data": data,
    }
    return json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()


def headers_of(
    delivery: WebhookDelivery, endpoint: WebhookEndpoint, *, body: bytes, now: datetime
) -> Mapping[str, str]:
    """Return the headers of Standard Webhooks, signed now."""
    timestamp = int(now.timestamp())
    return {
        "Content-Type": "application/json",
        "User-Agent": "whatsapp-memory-webhooks/1",
        "webhook-id": delivery.message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(
            keys=endpoint.keys(now),
            message_id=delivery.message_id,
            timestamp=timestamp,
            body=body,
        ),
    }
