"""Secrets and signatures, as Standard Webhooks defines them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable

# People and scanners for leaked secrets recognise a secret by this prefix.
MARK = "whsec_"
BYTES = 32


def secret_new() -> str:
    return MARK + base64.b64encode(secrets.token_bytes(BYTES)).decode()


def signature(*, keys: Iterable[str], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the header ``webhook-signature``: one signature for each secret."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{_mac(key, signed)}" for key in keys)


def _mac(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(MARK))
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
