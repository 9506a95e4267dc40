"""What can be wrong with a folder of sessions and with a file in it."""

from __future__ import annotations


class LegacyError(Exception):
    """A file or a record can't be used; the text says which field and why, never what it
    holds."""


class LegacyMissing(LegacyError):
    """The file isn't there."""


class FolderError(Exception):
    """The folder can't be used at all. ``usage``: another one was meant."""

    def __init__(self, message: str, *, usage: bool = False) -> None:
        super().__init__(message)
        self.usage = usage
