"""A server whose providers are configured, and recorded bodies of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.webhooks.posting import GREEN_TOKEN, SECRET

PAYLOADS = Path(__file__).resolve().parents[1] / "payloads"


@pytest.fixture(autouse=True)
def configured(settings: Any) -> None:
    settings.WHATSAPP_CLOUD_APP_SECRET = SECRET
    settings.WHATSAPP_CLOUD_VERIFY_TOKEN = "test-verify-token"
    settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID = "100000000000001"
    settings.GREEN_API_WEBHOOK_TOKEN = GREEN_TOKEN
    settings.GREEN_API_ID_INSTANCE = "1101000001"


@pytest.fixture
def cloud_text() -> dict[str, Any]:
    body: dict[str, Any] = json.loads((PAYLOADS / "cloud" / "text.json").read_text())
    return body


@pytest.fixture
def green_text() -> dict[str, Any]:
    body: dict[str, Any] = json.loads((PAYLOADS / "green" / "extended_text.json").read_text())
    return body
