"""Prove that a backup can be restored."""

from sessions_app.backup.restore_drill_command import Command

__all__ = ["Command"]
