"""Write the whole database into one archive."""

from sessions_app.backup.restore_drill_command import Command

__all__ = ["Command"]
