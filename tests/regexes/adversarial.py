"""Make texts that are hard for a regular expression, from its own syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.regexes.steps import fits, is_single, key, tree_of

# Looked at where a set has no first character of its own.
ALPHABET = "a0 _A.-,'\"\n\tא!@:/(é"
MAX_CHARACTERS = 6
TAILS = ("", "\x00", "a")
# What people write in long runs, whether an expression names it or not.
RUNS = (" ", "'", '"', "`", "1")


@dataclass(frozen=True)
class Shape:
    """A text that can be of any size: each of ``repeated`` stands in it many times, in turn."""

    before: str
    repeated: tuple[str, ...]
    after: str = ""

    def text(self, size: int) -> str:
        share = size // len(self.repeated)
        return (
            self.before
            + "".join(each * (share // len(each)) for each in self.repeated)
            + self.after
        )


def shapes(pattern: re.Pattern[str]) -> list[Shape]:
    """Return texts that repeat what the expression repeats, and then don't fit."""
    return list(dict.fromkeys(each for each in _shapes(pattern) if all(each.repeated)))


def _shapes(pattern: re.Pattern[str]) -> Iterator[Shape]:
    tree = list(tree_of(pattern))
    flags = pattern.flags
    for before, body in dict.fromkeys(_pumps(tree, flags, "")):
        for tail in TAILS:
            yield Shape(before, (body,), tail)
        yield Shape("", (before + body,))
        yield Shape("", (before,))
    for before in dict.fromkeys(before for before, _ in _pumps(tree, flags, "")):
        for run in RUNS:
            yield Shape(before, (run,), "\x00")
    characters = list(dict.fromkeys(_characters(tree, flags)))[:MAX_CHARACTERS]
    for first in characters:
        yield Shape("", (first,))
        yield Shape("", (first,), "\x00")
        for second in characters:
            if first != second:
                yield Shape("", (first + second,))
                yield Shape("", (first, second))


def _pumps(nodes: list[Any], flags: int, before: str) -> Iterator[tuple[str, str]]:
    """Yield for each repetition a text that leads to it, and one that it repeats. What stands at
    most once is no repetition: a run of it is one of what stands around it."""
    for op, about in nodes:
        name = str(op)
        if name.endswith("_REPEAT"):
            if about[1] > 1:
                for choice in range(3):
                    yield before, _sample(list(about[2]), flags, choice)
            yield from _pumps(list(about[2]), flags, before)
        elif name == "SUBPATTERN":
            yield from _pumps(list(about[3]), (flags | about[1]) & ~about[2], before)
        elif name == "BRANCH":
            for nodes_of_branch in about[1]:
                yield from _pumps(list(nodes_of_branch), flags, before)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from _pumps(list(about[1]), flags, before)
        elif name == "ATOMIC_GROUP":
            yield from _pumps(list(about), flags, before)
        before += _sample([(op, about)], flags, 0)


def _sample(nodes: list[Any], flags: int, choice: int) -> str:
    """Return a text that the nodes match, as far as that is simple."""
    return "".join(_sample_of(str(op), op, about, flags, choice) for op, about in nodes)


def _sample_of(name: str, op: Any, about: Any, flags: int, choice: int) -> str:
    if is_single(op):
        fitting = _fitting(op, about, flags)
        return fitting[choice % len(fitting)] if fitting else ""
    if name.endswith("_REPEAT"):
        return _sample(list(about[2]), flags, choice) * max(int(about[0]), 1)
    if name == "SUBPATTERN":
        return _sample(list(about[3]), (flags | about[1]) & ~about[2], choice)
    if name == "BRANCH":
        return _sample(list(about[1][choice % len(about[1])]), flags, choice)
    if name == "ATOMIC_GROUP":
        return _sample(list(about), flags, choice)
    return ""


def _fitting(op: Any, about: Any, flags: int) -> list[str]:
    own = {
        "LITERAL": lambda: [chr(about)],
        "IN": lambda: [
            chr(what if str(kind) == "LITERAL" else what[0])
            for kind, what in about
            if str(kind) in ("LITERAL", "RANGE") and str(about[0][0]) != "NEGATE"
        ],
    }.get(str(op), list)()
    known = [each for each in ALPHABET if fits(op, key(about), each, flags)]
    return [*own[:4], *known[:4]]


def _characters(nodes: list[Any], flags: int) -> Iterator[str]:
    for op, about in nodes:
        name = str(op)
        if is_single(op):
            yield from _fitting(op, about, flags)[:3]
        elif name.endswith("_REPEAT"):
            yield from _characters(list(about[2]), flags)
        elif name == "SUBPATTERN":
            yield from _characters(list(about[3]), flags)
        elif name == "BRANCH":
            for each in about[1]:
                yield from _characters(list(each), flags)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from _characters(list(about[1]), flags)
        elif name == "ATOMIC_GROUP":
            yield from _characters(list(about), flags)
