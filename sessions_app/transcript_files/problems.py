"""The problems of a transcript: the file, the line, the fault, and its correction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Limit of problems listed for one file; further ones are counted.
MAX_PROBLEMS = 100

# The seven format rules of seed 000, by the code of their problem.
RULES = {
    "starts_with_user": 1,
    "alternates": 2,
    "ends_with_assistant": 3,
    "consecutive": 4,
    "too_few_messages": 5,
    "spacing": 6,
    "not_exact": 7,
}


@dataclass(frozen=True)
class Problem:
    """One problem of a transcript.

    ``code`` is one of ``RULES``, or another reason to refuse the file. ``line`` counts from 1.
    It holds no text of the file.
    """

    code: str
    file: str
    what: str
    mend: str
    line: int | None = None

    @property
    def rule(self) -> int | None:
        """Return the format rule (one of seven) that it breaks, if any."""
        return RULES.get(self.code)

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}, line {self.line}"
        rule = "" if self.rule is None else f"rule {self.rule}: "
        return f"{place}: {rule}{self.what} {self.mend}"

    def as_dict(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "line": self.line,
            "rule": self.rule,
            "code": self.code,
            "what": self.what,
            "mend": self.mend,
        }


class Problems:
    """The problems of one file, as they are found; only the first ones are kept."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Problem] = []
        self.further = 0

    def add(self, code: str, what: str, mend: str, *, line: int | None = None) -> None:
        if len(self.found) < MAX_PROBLEMS:
            self.found.append(Problem(code, self.file, what, mend, line))
        else:
            self.further += 1


# Errors that stop a save or an export of transcripts.


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
