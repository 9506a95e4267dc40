"""Errors that stop a save or an export of transcripts."""

from __future__ import annotations

from collections.abc import Sequence

from sessions_app.transcript_files.problems import Problem


class TranscriptsError(Exception):
    """The base of the errors; the text says what was wrong and how to correct it."""


class FolderError(TranscriptsError):
    """The folder can't be used. ``usage``: the folder doesn't exist."""

    def __init__(self, text: str, *, usage: bool = False) -> None:
        super().__init__(text)
        self.usage = usage


class BusyError(TranscriptsError):
    """Another process is already working on it."""


class RefusedError(TranscriptsError):
    """The files have problems: nothing was stored, and they are in their place.

    ``further``: the number of problems that are not listed.
    """

    def __init__(self, problems: Sequence[Problem], further: int = 0) -> None:
        self.problems = list(problems)
        self.further = further
        count = len(self.problems) + further
        super().__init__(
            f"{count} {'problem' if count == 1 else 'problems'}: nothing was stored, and the files "
            "are where they were. Mend them and run it again."
        )


class FaultError(TranscriptsError):
    """A file or the disk failed. The text says which steps were completed."""
