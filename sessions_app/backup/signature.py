"""Sign the manifest of an archive with a key that is not in the archive."""

from __future__ import annotations

import hashlib
import hmac

SIGNATURE = "manifest.hmac"
SIGNATURE_SIZE = 64

# The same key never signs anything else; the label keeps it so if that changes.
_LABEL = b"backup manifest\n"


def signature_of(manifest: bytes, key: str) -> bytes:
    """Return the HMAC-SHA256 of a manifest in hex. The manifest holds all other checksums."""
    digest = hmac.new(key.encode(), _LABEL + manifest, hashlib.sha256)
    return digest.hexdigest().encode()


def is_signed(manifest: bytes, signature: bytes, key: str) -> bool:
    return hmac.compare_digest(signature_of(manifest, key), signature)
