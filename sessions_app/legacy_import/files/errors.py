"""Errors of a folder of sessions and of a file in it."""

from __future__ import annotations


class LegacyError(Exception):
    """A file or a record can't be used.

    The text names the field and the reason, never the value.
    """


class LegacyMissing(LegacyError):
    """The file doesn't exist."""


class FolderError(Exception):
    """The folder can't be used. ``usage``: another one was meant."""

    def __init__(self, message: str, *, usage: bool = False) -> None:
        super().__init__(message)
        self.usage = usage
