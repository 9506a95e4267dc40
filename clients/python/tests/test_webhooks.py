"""Events are accepted from the server alone. One that it posts is in its own tests."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time

import pytest
from whatsapp_memory_client import WebhookVerificationError, verify_webhook

SECRET = "whsec_" + base64.b64encode(b"a key of tests" * 2).decode()
OTHER = "whsec_" + base64.b64encode(b"another one" * 3).decode()
BODY = json.dumps({"type": "memory.created", "timestamp": "", "data": {"x": "שלום"}}).encode()


def signed(body: bytes = BODY, secret: str = SECRET, at: float | None = None) -> dict[str, str]:
    """The headers of a post, by the words of the standard."""
    sent_at = str(int(time.time() if at is None else at))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    right = hmac.new(key, b"evt_1." + sent_at.encode() + b"." + body, hashlib.sha256).digest()
    return {
        "Webhook-Id": "evt_1",
        "Webhook-Timestamp": sent_at,
        "Webhook-Signature": f"v1,{base64.b64encode(right).decode()}",
    }


def with_signature(found: str) -> dict[str, str]:
    return {**signed(), "Webhook-Signature": found}


RIGHT = signed()["Webhook-Signature"]


def test_what_the_server_signed_is_accepted() -> None:
    event = verify_webhook(BODY, signed(), SECRET)
    assert (event["type"], event["data"]) == ("memory.created", {"x": "שלום"})
    assert verify_webhook(BODY.decode(), signed(), [OTHER, SECRET]) == event
    # Without the prefix, and with another signature and another version before it.
    two = {"webhook-id": "evt_1", "webhook-timestamp": signed()["Webhook-Timestamp"]}
    both = f"v1,AAAA v2,{RIGHT[3:]} {signed()['Webhook-Signature']}"
    bare = SECRET.removeprefix("whsec_")
    assert verify_webhook(BODY, {**two, "webhook-signature": both}, bare) == event
    late = signed(at=time.time() - 3000)
    assert verify_webhook(BODY, late, SECRET, tolerance=4000) == event


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (BODY + b" ", signed()),
        (BODY, signed(secret=OTHER)),
        (BODY, signed(at=time.time() - 4000)),
        (BODY, signed(at=time.time() + 4000)),
        (BODY, {**signed(), "Webhook-Id": "evt_2"}),
        (BODY, {**signed(), "Webhook-Timestamp": "yesterday"}),
        (BODY, {**signed(), "Webhook-Timestamp": "٣"}),
        (BODY, {**signed(), "Webhook-Timestamp": "9" * 400}),
        (BODY, with_signature("")),
        (BODY, with_signature("v1,")),
        (BODY, with_signature("v1,é")),
        (BODY, with_signature(RIGHT.replace("v1", "v2"))),
        (BODY, with_signature(RIGHT[3:])),
        (BODY, {}),
        (b"no JSON", signed(b"no JSON")),
    ],
)
def test_anything_else_is_refused(body: bytes, headers: dict[str, str]) -> None:
    with pytest.raises(WebhookVerificationError):
        verify_webhook(body, headers, SECRET)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_no base64!", "whsec_abc"])
def test_a_secret_that_is_none_is_an_error_of_the_program(secret: str) -> None:
    with pytest.raises(ValueError, match="secret"):
        verify_webhook(BODY, signed(), secret)
