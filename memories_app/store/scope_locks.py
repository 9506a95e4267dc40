"""Locks of scopes: only one transaction at a time compares the memories of a scope."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from django.db import connection


def scopes_lock(scopes: Iterable[str]) -> None:
    """Wait for and take the locks of these scopes; held until the transaction ends.

    The locks are always taken in one order, so that no deadlock occurs. Take them after the
    locks of chats, sessions and turns, and before any row of a memory.
    """
    keys = sorted({_key(scope) for scope in scopes})
    with connection.cursor() as cursor:
        for key in keys:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def _key(scope: str) -> int:
    digest = hashlib.blake2b(f"memories {scope}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
