"""Write memories as lines of JSON."""

from sessions_app.memories.memories_export_command import Command

__all__ = ["Command"]
