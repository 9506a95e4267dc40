"""Rebuild a session from its messages (RECOVERY-001)."""

from sessions_app.legacy_import.session_rebuild_command import Command

__all__ = ["Command"]
