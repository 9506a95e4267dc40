"""Names of batches: ``chat_memory_batch_001.txt``, and so on without a gap."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sessions_app.transcript_files.problems import Problem

_NAME = re.compile(r"chat_memory_batch_([0-9]{3,9})\.txt")
_LIKE = re.compile(r"chat_memory_batch.*\.txt", re.IGNORECASE | re.DOTALL)


def batch_name(number: int) -> str:
    return f"chat_memory_batch_{number:03}.txt"


def batch_number(name: str) -> int | None:
    """Return the number of a batch by its file's name; None for another file."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def looks_like_a_batch(name: str) -> bool:
    """Return whether the name was probably meant as a batch."""
    return _LIKE.fullmatch(name) is not None


def numbering_problems(numbers: Iterable[tuple[int, str]]) -> Iterator[Problem]:
    """Return the problems of these files' numbers, given in their order."""
    last: int | None = None
    for number, name in numbers:
        if number == 0:
            yield Problem("number", name, "Batches are numbered from 001.", "Rename the file.")
        elif number == last:
            what = f"Another file has the number {number}, too."
            yield Problem("number_twice", name, what, "Keep one of them, or give it its number.")
        elif last is not None and number > last + 1:
            yield Problem(
                "number_missing",
                name,
                f"{_missing(last + 1, number - 1)} before it.",
                "Put it there, or rename the files that follow: batches have no gaps.",
            )
        last = number


def _missing(first: int, last: int) -> str:
    if first == last:
        return f"{batch_name(first)} is missing"
    return f"{batch_name(first)} to {batch_name(last)} are missing"
