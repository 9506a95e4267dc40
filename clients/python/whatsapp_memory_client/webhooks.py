"""Events that the server posts, in the form of Standard Webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from .core import MemoryClientError

TOLERANCE_SECONDS = 300


class WebhookVerificationError(MemoryClientError):
    """A post that is not from the server, or is too old: answer 401, and use nothing of it."""


class WebhookEvent(TypedDict):
    """What happened. Later versions of the server may add types and fields."""

    type: str
    timestamp: str
    data: dict[str, Any]


def verify_webhook(
    body: bytes | str,
    headers: Mapping[str, str],
    secret: str | Sequence[str],
    *,
    tolerance: float = TOLERANCE_SECONDS,
) -> WebhookEvent:
    """Return the event of a post, whose body is given as it came, before it is parsed.

    secret: ``whsec_…``; several while a secret is changed. tolerance: the seconds by which the
    time of sending may differ from this machine's. Raises WebhookVerificationError; ValueError for
    a secret that isn't one.
    """
    raw = body.encode() if isinstance(body, str) else bytes(body)
    given = {str(name).lower(): str(value) for name, value in headers.items()}
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    missing = [name for name in names if not given.get(name)]
    if missing:
        raise WebhookVerificationError(f"The header {missing[0]} is missing.")
    message_id, sent_at, signatures = (given[name] for name in names)
    if not (sent_at.isascii() and sent_at.isdigit() and len(sent_at) < 16):
        raise WebhookVerificationError("The header webhook-timestamp is no time.")
    if abs(time.time() - int(sent_at)) > tolerance:
        raise WebhookVerificationError(
            "It was sent too long ago, or this machine's clock is wrong."
        )
    signed = f"{message_id}.{sent_at}.".encode() + raw
    keys = [_key(each) for each in ([secret] if isinstance(secret, str) else secret)]
    right = [base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()) for key in keys]
    versions = [each.partition(",") for each in signatures.split()]
    found = [signature.encode() for version, _, signature in versions if version == "v1"]
    # All of them are compared, so that the time tells nothing.
    matches = [hmac.compare_digest(one, other) for one in right for other in found]
    if not any(matches):
        raise WebhookVerificationError("No signature is right: another secret, or a changed body.")
    try:
        return cast("WebhookEvent", json.loads(raw))
    except ValueError as error:
        raise WebhookVerificationError("The body isn't JSON.") from error


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.strip().removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    if not key:
        raise ValueError("A webhook's secret has the form whsec_…, and this one hasn't.")
    return key
