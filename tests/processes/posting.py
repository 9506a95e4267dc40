"""Webhooks, posted as the providers post them."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from memoryproject.foundation.integrations.loopback.providers import (
    body_bytes,
    signed_headers,
    token_headers,
)
from tests.processes import plain_http

NUMBER_ID = "100000000000001"
INSTANCE = "1101000001"
APP_SECRET = "app-secret-of-tests"
WEBHOOK_TOKEN = "webhook-token-of-tests"

_phones = itertools.count(15550110000)


def new_phone() -> str:
    """A phone that no other test has."""
    return str(next(_phones))


@dataclass(frozen=True)
class Poster:
    """Posts to one server, at ``url``."""

    url: str

    def cloud(self, payload: dict[str, Any]) -> httpx.Response:
        """One signed body of Meta's."""
        body = body_bytes(payload)
        return self.raw("cloud", body, signed_headers(APP_SECRET, body))

    def green(self, payload: dict[str, Any]) -> httpx.Response:
        """One body of Green API's, with its token."""
        return self.raw("green", body_bytes(payload), token_headers(WEBHOOK_TOKEN))

    def raw(
        self, provider: str, body: bytes | Iterator[bytes], headers: Mapping[str, str | bytes]
    ) -> httpx.Response:
        """Any body with any headers; one that comes in parts is sent without its length."""
        sent = [
            (name.encode(), value if isinstance(value, bytes) else value.encode())
            for name, value in headers.items()
        ]
        address = f"{self.url}/webhooks/whatsapp/{provider}/"
        return plain_http.post(address, content=body, headers=sent, timeout=120)

    def say(self, phone: str, text: str) -> str:
        """A text from a phone, taken by the server; returns its wamid."""
        payload = cloud_text(phone, text)
        answer = self.cloud(payload)
        assert answer.status_code == httpx.codes.OK, (answer.status_code, answer.text)
        return str(payload["entry"][0]["changes"][0]["value"]["messages"][0]["id"])


def cloud_text(phone: str, text: str) -> dict[str, Any]:
    """A text that was just written, as Meta delivers it."""
    return cloud_message(phone, "text", {"body": text})


def cloud_message(phone: str, kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """A message of any type that was just sent, as Meta delivers it."""
    message = {
        "from": phone,
        "id": f"wamid.{uuid.uuid4().hex}",
        "timestamp": str(int(time.time())),
        "type": kind,
        kind: content,
    }
    contact = {"profile": {"name": "Test User"}, "wa_id": phone}
    return cloud_value(contacts=[contact], messages=[message])


def cloud_value(**members: Any) -> dict[str, Any]:
    """A body with one change of our number."""
    metadata = {"display_phone_number": "15550100001", "phone_number_id": NUMBER_ID}
    value = {"messaging_product": "whatsapp", "metadata": metadata, **members}
    change = {"value": value, "field": "messages"}
    return {
        "object": "whatsapp_business_account",
        "entry": [{"id": "200000000000001", "changes": [change]}],
    }


def green_text(phone: str, text: str) -> dict[str, Any]:
    """A text that was just written, as Green API delivers it."""
    return green_message(
        phone, {"typeMessage": "textMessage", "textMessageData": {"textMessage": text}}
    )


def green_message(phone: str, data: dict[str, Any]) -> dict[str, Any]:
    """A message of any type that was just sent, as Green API delivers it."""
    chat = f"{phone}@c.us"
    return {
        "typeWebhook": "incomingMessageReceived",
        "instanceData": {
            "idInstance": int(INSTANCE),
            "wid": "15550100001@c.us",
            "typeInstance": "whatsapp",
        },
        "timestamp": int(time.time()),
        "idMessage": uuid.uuid4().hex.upper(),
        "senderData": {"chatId": chat, "chatName": "T", "sender": chat, "senderName": "T"},
        "messageData": data,
    }
