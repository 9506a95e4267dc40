"""What can be wrong with a memory document, and where."""

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
    """The path of a field. A key that isn't a plain name stands in brackets, shortened."""
    if _PLAIN_KEY.fullmatch(key) and len(key) <= _MAX_SHOWN:
        return f"{path}.{key}" if path else key
    return f"{path}[{shown(key)}]"


def shown(text: str) -> str:
    """A text in quotes, shortened, as it can be shown."""
    short = text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
    return printable(json.dumps(short, ensure_ascii=False))


def printable(text: str) -> str:
    """The text with nothing in it that a terminal would act on, or can't show."""
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def render_problem(problems: Sequence[Problem]) -> str:
    """All of them in a line; of very many the first."""
    lines = [str(problem) for problem in problems[:_MAX_REPORTED]]
    if len(problems) > _MAX_REPORTED:
        lines.append(f"and {len(problems) - _MAX_REPORTED} more")
    return "; ".join(lines)


class MemoryDocumentError(Exception):
    """It was refused, and nothing was changed. The base of the others."""


class MemoryDocumentInvalidError(MemoryDocumentError, ValueError):
    """A document, or what is to become one, has these problems: all of them are listed."""

    def __init__(self, problems: Sequence[Problem], *, place: str = "") -> None:
        super().__init__(
            f"{place}: {render_problem(problems)}" if place else render_problem(problems)
        )
        self.problems = list(problems)
        self.place = place


class MemoryDocumentNameError(MemoryDocumentError, ValueError):
    """An identifier or a pattern that can't be one."""


class MemoryDocumentNotFoundError(MemoryDocumentError):
    """There is no such document."""


class MemoryDocumentStoreError(MemoryDocumentError):
    """Where documents are kept can't be used."""
