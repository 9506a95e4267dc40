"""Propose to merge memories that say much the same."""

from sessions_app.memories.memories_consolidate_command import Command

__all__ = ["Command"]
