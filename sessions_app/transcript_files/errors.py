"""Why a save or an export of transcripts stopped."""

from __future__ import annotations

from collections.abc import Sequence

from sessions_app.transcript_files.problems import Problem


class TranscriptsError(Exception):
    """The text says what was wrong and what to do."""


class FolderError(TranscriptsError):
    """The folder can't be used. ``usage``: there is no such folder."""

    def __init__(self, text: str, *, usage: bool = False) -> None:
        super().__init__(text)
        self.usage = usage


class BusyError(TranscriptsError):
    """Another process is at it."""


class RefusedError(TranscriptsError):
    """Something is wrong with the files: nothing was stored, and they are where they were.
    ``further``: how many problems there are beyond those that are told."""

    def __init__(self, problems: Sequence[Problem], further: int = 0) -> None:
        self.problems = list(problems)
        self.further = further
        count = len(self.problems) + further
        super().__init__(
            f"{count} {'problem' if count == 1 else 'problems'}: nothing was stored, and the files "
            "are where they were. Mend them and run it again."
        )


class FaultError(TranscriptsError):
    """Files or disk failed on the way. The text says how far it got."""
