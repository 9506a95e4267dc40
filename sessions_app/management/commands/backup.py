"""Write the whole database into one archive."""

from sessions_app.backup.backup_command import Command

__all__ = ["Command"]
