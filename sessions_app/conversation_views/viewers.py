"""The staff who have a conversation open, kept in the cache for less than a minute."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.core.cache import cache
from django.utils import timezone

# The open page calls every 10 seconds; who hasn't called for longer has left.
LASTS_SECONDS = 25


def viewer_seen(*, chat_id: UUID, user: User) -> list[str]:
    """Record that a user has the chat open; return the names of the others, in order.

    Two users who call at the same moment may miss each other until the next call.
    """
    now = timezone.now().timestamp()
    key = f"viewers:{chat_id}"
    others = {
        number: (name, at)
        for number, (name, at) in cache.get(key, {}).items()
        if number != user.pk and now - at < LASTS_SECONDS
    }
    own = (user.get_full_name() or user.get_username(), now)
    cache.set(key, {**others, user.pk: own}, LASTS_SECONDS)
    return sorted(name for name, _at in others.values())
