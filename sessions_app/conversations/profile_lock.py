"""Lock the assistant's profile for a change."""

from __future__ import annotations

from sessions_app.models import AssistantProfile


def profile_locked() -> AssistantProfile:
    """Return the one profile, locked until the caller's transaction ends.

    Creates it if it doesn't exist.
    """
    AssistantProfile.objects.get_or_create(pk=1)
    return AssistantProfile.objects.select_for_update().get(pk=1)
