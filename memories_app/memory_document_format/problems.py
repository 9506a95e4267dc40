"""Problems of memory documents with their paths, and the errors that carry them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_SHOWN = 60
_MAX_REPORTED = 20


@dataclass(frozen=True)
class Problem:
    """``path`` leads to the place, such as content.decisions[2]; empty: the document itself."""

    path: str
    detail: str

    def __str__(self) -> str:
        return f"{self.path or 'the document'}: {self.detail}"


Problems = Iterator[Problem]


def below(path: str, key: str) -> str:
    """Return the path of a field. Keys that aren't plain names are shortened, in brackets."""
    if _PLAIN_KEY.fullmatch(key) and len(key) <= _MAX_SHOWN:
        return f"{path}.{key}" if path else key
    return f"{path}[{shown(key)}]"


def shown(text: str) -> str:
    """Return a text in quotes, shortened and printable."""
    short = text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
    return printable(json.dumps(short, ensure_ascii=False))


def printable(text: str) -> str:
    """Return the text without characters that a terminal would interpret or can't show."""
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def render_problem(problems: Sequence[Problem]) -> str:
    """Return all problems in one line; of very many only the first ones."""
    lines = [str(problem) for problem in problems[:_MAX_REPORTED]]
    if len(problems) > _MAX_REPORTED:
        lines.append(f"and {len(problems) - _MAX_REPORTED} more")
    return "; ".join(lines)


class MemoryDocumentError(Exception):
    """The operation was refused, and nothing was changed. Base of the other errors."""


class MemoryDocumentInvalidError(MemoryDocumentError, ValueError):
    """A document is invalid. The error lists all problems."""

    def __init__(self, problems: Sequence[Problem], *, place: str = "") -> None:
        super().__init__(
            f"{place}: {render_problem(problems)}" if place else render_problem(problems)
        )
        self.problems = list(problems)
        self.place = place


class MemoryDocumentNameError(MemoryDocumentError, ValueError):
    """An invalid identifier or pattern."""


class MemoryDocumentNotFoundError(MemoryDocumentError):
    """There is no such document."""


class MemoryDocumentStoreError(MemoryDocumentError):
    """The place where documents are kept can't be used."""
