"""Tombstones: keyed hashes of forgotten facts, so that they are not learned again.

People may still store the fact explicitly: a tombstone stops automatic extraction only.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from django.conf import settings

from memories_app.facts.facade import fact_key
from memories_app.models import Tombstone


def keyed_hash(text: str, *, purpose: str) -> str:
    """Return the hex HMAC-SHA-256 of the text with AUDIT_KEY, different for each purpose."""
    message = f"{purpose}\0{text}".encode(errors="surrogatepass")
    return hmac.new(settings.AUDIT_KEY.encode(), message, hashlib.sha256).hexdigest()


def tombstones_add(*, facts: Iterable[tuple[str, str]]) -> int:
    """Store tombstones of facts, each given by scope and text, in the caller's transaction."""
    stones = [Tombstone(scope=scope, key=_key(scope, text)) for scope, text in facts]
    Tombstone.objects.bulk_create(stones, ignore_conflicts=True)
    return len(stones)


def tombstones_remove(*, scope: str) -> int:
    """Delete the tombstones of a deleted scope."""
    return Tombstone.objects.filter(scope=scope).delete()[0]


def is_forgotten(*, content: str, scope: str) -> bool:
    """Return whether this fact was forgotten in the scope."""
    return Tombstone.objects.filter(scope=scope, key=_key(scope, content)).exists()


def _key(scope: str, text: str) -> str:
    return keyed_hash(f"{scope}\0{fact_key(text)}", purpose="tombstone")
