"""Posts webhooks to the views as the providers do."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from memoryproject.foundation.integrations.loopback.providers import body_bytes, sign

SECRET = "test-app-secret"
GREEN_TOKEN = "test-webhook-token"
CLOUD = "/webhooks/whatsapp/cloud/"
GREEN = "/webhooks/whatsapp/green/"
JSON = "application/json"


def post_cloud(client: Client, body: bytes | dict[str, Any], signature: str | None = None) -> Any:
    """Signed, unless another signature is given; an empty one is left out."""
    raw = body if isinstance(body, bytes) else body_bytes(body)
    header = sign(SECRET, raw) if signature is None else signature
    headers = {"X-Hub-Signature-256": header} if header else {}
    return client.post(CLOUD, raw, content_type=JSON, headers=headers)


def post_green(client: Client, body: bytes | dict[str, Any], header: str | None = None) -> Any:
    """With the instance's token, unless another header is given; an empty one is left out."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    authorization = f"Bearer {GREEN_TOKEN}" if header is None else header
    headers = {"Authorization": authorization} if authorization else {}
    return client.post(GREEN, raw, content_type=JSON, headers=headers)
