"""Merge the chats that one person has under several spellings of the id."""

from sessions_app.inbound.chats_merge_command import Command

__all__ = ["Command"]
