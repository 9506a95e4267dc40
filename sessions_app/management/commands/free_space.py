"""Free space on the disk."""

from sessions_app.backup.free_space_command import Command

__all__ = ["Command"]
