"""Authorise Green API webhooks by the header's token."""

from __future__ import annotations

import hashlib
import hmac


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


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
