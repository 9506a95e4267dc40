"""Bring in memories from lines of JSON."""

from sessions_app.memories.memories_import_command import Command

__all__ = ["Command"]
