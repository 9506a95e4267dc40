"""Saves the assistant's profile."""

from __future__ import annotations

from sessions_app.models import AssistantProfile


def profile_version(profile: AssistantProfile) -> str:
    """Names what is stored: every save makes another one."""
    return profile.updated_at.isoformat() if profile.updated_at else ""


def profile_locked() -> AssistantProfile:
    """The one profile, made on the way, locked until the caller's transaction ends."""
    AssistantProfile.objects.get_or_create(pk=1)
    return AssistantProfile.objects.select_for_update().get(pk=1)
