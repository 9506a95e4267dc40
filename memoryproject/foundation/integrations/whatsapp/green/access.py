"""Authorise Green API webhooks by the header's token and the instance that the body names."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from memoryproject.foundation.integrations.whatsapp.lenient import mapping, text_of


def verify_token(*, expected: str, header: str | None) -> bool:
    """Return whether the ``Authorization`` header's second word is the configured webhook token.

    Green API sends ``Bearer <token>``; the scheme is ignored, and a header of one word is the token
    itself. False while no token is configured. The comparison takes the same time for wrong tokens
    of any length, in any alphabet.
    """
    words = (header or "").split()
    if not expected or not 1 <= len(words) <= 2:
        return False
    return hmac.compare_digest(_digest(words[-1]), _digest(expected))


def is_own_instance(payload: Any, *, id_instance: str) -> bool:
    """Return whether the body comes from our instance; several may share the token."""
    instance = text_of(mapping(mapping(payload).get("instanceData")).get("idInstance"))
    return bool(id_instance) and instance == id_instance.strip()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
