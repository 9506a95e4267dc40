"""Saves the assistant's profile."""

from __future__ import annotations

from sessions_app.models import AssistantProfile


def profile_locked() -> AssistantProfile:
    """The one profile, made on the way, locked until the caller's transaction ends."""
    AssistantProfile.objects.get_or_create(pk=1)
    return AssistantProfile.objects.select_for_update().get(pk=1)
