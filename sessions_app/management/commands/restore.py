"""Put a backup into an empty database."""

from sessions_app.backup.restore_command import Command

__all__ = ["Command"]
