"""One at a time where memories of a scope are compared with each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from uuid import UUID

from django.db import connection

from memories_app.models import Visibility


def scope_of(visibility: str, chat_id: UUID | None) -> str:
    """What the database makes of ``Memory.scope``."""
    return f"chat:{chat_id}" if visibility == str(Visibility.CHAT) else str(visibility)


def scopes_lock(scopes: Iterable[str]) -> None:
    """Wait until nobody else decides about memories of these scopes; held until the
    transaction ends. Always in one order, so that nobody waits in a circle. Take it after the
    locks of chats, sessions and turns, and before any row of a memory."""
    keys = sorted({_key(scope) for scope in scopes})
    with connection.cursor() as cursor:
        for key in keys:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def _key(scope: str) -> int:
    digest = hashlib.blake2b(f"memories {scope}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
