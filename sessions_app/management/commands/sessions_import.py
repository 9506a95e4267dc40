"""Bring in sessions and messages from seed 002's JSON files."""

from sessions_app.legacy_import.sessions_import_command import Command

__all__ = ["Command"]
