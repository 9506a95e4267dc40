"""The signature that Meta puts on every webhook body."""

from __future__ import annotations

import hashlib
import hmac

_PREFIX = "sha256="


def verify_signature(*, secret: str, body: bytes, header: str | None) -> bool:
    """Return whether the header (``X-Hub-Signature-256``) is the body's HMAC with the app secret.

    ``body`` is the request's raw bytes: Meta signs them with non-ASCII characters escaped, so JSON
    that was parsed and written again has another signature. An empty secret or header is never
    valid. The comparison takes constant time.
    """
    if not secret or not header or not header.startswith(_PREFIX):
        return False
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    given = header[len(_PREFIX) :].strip().lower()
    return hmac.compare_digest(expected.encode(), given.encode(errors="replace"))
