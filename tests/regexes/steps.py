"""Count the steps of a regular expression, so that no test needs a clock.

A small backtracking matcher for the syntax tree of the standard library's own parser. It tries the
alternatives in the order in which `re` tries them; a step is one look at one character, or one
position at which something is tried.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as sre
    from re import _parser as parser
else:
    import sre_constants as sre
    import sre_parse as parser

Then = Callable[[int], int | None]
Nodes = tuple[Any, ...]

_CATEGORIES = {
    "CATEGORY_DIGIT": re.compile(r"\d"),
    "CATEGORY_NOT_DIGIT": re.compile(r"\D"),
    "CATEGORY_SPACE": re.compile(r"\s"),
    "CATEGORY_NOT_SPACE": re.compile(r"\S"),
    "CATEGORY_WORD": re.compile(r"\w"),
    "CATEGORY_NOT_WORD": re.compile(r"\W"),
}
_SINGLE = {sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN, sre.RANGE, sre.CATEGORY}


class TooManyStepsError(Exception):
    """The expression takes more steps than the limit."""


@lru_cache(maxsize=4)
def tree_of(pattern: re.Pattern[str]) -> Any:
    """Many texts are tried in a row with the same expression."""
    return parser.parse(pattern.pattern, pattern.flags)


@dataclass
class Matcher:
    """Matches one text. After ``limit`` steps it raises TooManyStepsError."""

    pattern: re.Pattern[str]
    text: str
    limit: int
    steps: int = 0
    groups: dict[int, tuple[int, int]] = field(default_factory=dict)

    def spans(self, *, everywhere: bool = True, whole: bool = False) -> list[tuple[int, int]]:
        """Return where `finditer` matches; with ``everywhere`` false, where `match` does.

        ``whole``: where `fullmatch` does.
        """
        tree = list(tree_of(self.pattern))
        everywhere = everywhere and not whole
        found, at = [], 0
        while at <= len(self.text):
            self.groups = {}
            end = self._run(tree, 0, at, self.pattern.flags, self._whole if whole else _anywhere)
            if end is not None:
                found.append((at, end))
            at = at + 1 if end is None else max(end, at + 1)
            if not everywhere:
                break
        return found

    def _whole(self, place: int) -> int | None:
        return place if place == len(self.text) else None

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self.limit:
            raise TooManyStepsError

    def _run(self, nodes: Any, number: int, at: int, flags: int, then: Then) -> int | None:
        """Match the nodes from ``number`` on, and ``then`` what follows; return the end."""
        while number < len(nodes):
            op, about = nodes[number]
            self._step()
            if is_single(op):
                if at >= len(self.text) or not fits(op, key(about), self.text[at], flags):
                    return None
                at, number = at + 1, number + 1
                continue
            return self._complex(str(op), about, at, flags, self._rest(nodes, number, flags, then))
        return then(at)

    def _rest(self, nodes: Any, number: int, flags: int, then: Then) -> Then:
        return lambda place: self._run(nodes, number + 1, place, flags, then)

    def _complex(self, op: str, about: Any, at: int, flags: int, rest: Then) -> int | None:
        if op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            return self._repeat(op, about, at, flags, rest)
        if op == "SUBPATTERN":
            group, added, removed, nodes = about
            return self._group(group, nodes, at, (flags | added) & ~removed, rest)
        if op == "BRANCH":
            ends = (self._run(list(nodes), 0, at, flags, rest) for nodes in about[1])
            return next((end for end in ends if end is not None), None)
        if op == "AT":
            return rest(at) if self._is_at(str(about), at, flags) else None
        if op in ("ASSERT", "ASSERT_NOT"):
            seen = self._looks(about, at, flags)
            return rest(at) if seen == (op == "ASSERT") else None
        if op == "ATOMIC_GROUP":
            end = self._run(list(about), 0, at, flags, lambda place: place)
            return None if end is None else rest(end)
        if op == "GROUPREF":
            start, stop = self.groups.get(about, (0, -1))
            same = stop >= start and self.text.startswith(self.text[start:stop], at)
            return rest(at + stop - start) if same else None
        raise NotImplementedError(op)

    def _group(self, group: int | None, nodes: Any, at: int, flags: int, rest: Then) -> int | None:
        before = self.groups.get(group or 0)

        def close(place: int) -> int | None:
            kept = self.groups.get(group or 0)
            if group is not None:
                self.groups[group] = (at, place)
            end = rest(place)
            if end is None and group is not None:
                self.groups.pop(group)
                if kept is not None:
                    self.groups[group] = kept
            return end

        end = self._run(list(nodes), 0, at, flags, close)
        if end is None and group is not None and before is not None:
            self.groups[group] = before
        return end

    def _repeat(self, op: str, about: Any, at: int, flags: int, rest: Then) -> int | None:
        least, most, nodes = about
        if len(nodes) == 1 and is_single(nodes[0][0]):
            return self._repeat_single(op, (least, most, nodes[0]), at, flags, rest)
        if op == "POSSESSIVE_REPEAT":
            end = self._again(list(nodes), (least, most, True), 0, at, -1, flags, lambda p: p)
            return None if end is None else rest(end)
        return self._again(list(nodes), (least, most, op == "MAX_REPEAT"), 0, at, -1, flags, rest)

    def _again(
        self,
        nodes: list[Any],
        bounds: tuple[int, Any, bool],
        count: int,
        at: int,
        before: int,
        flags: int,
        rest: Then,
    ) -> int | None:
        least, most, greedy = bounds

        def more() -> int | None:
            if most is not sre.MAXREPEAT and count >= int(most):
                return None
            if count >= least and at == before:
                return None
            return self._run(
                nodes,
                0,
                at,
                flags,
                lambda place: self._again(nodes, bounds, count + 1, place, at, flags, rest),
            )

        def enough() -> int | None:
            return rest(at)

        self._step()
        if count < least:
            return more()
        first, second = (more, enough) if greedy else (enough, more)
        end = first()
        return second() if end is None else end

    def _repeat_single(
        self, op: str, about: tuple[int, Any, Any], at: int, flags: int, rest: Then
    ) -> int | None:
        """As `re` does: without recursion, all characters that fit are taken first."""
        least, most, (kind, what) = about
        longest = (
            len(self.text) - at if most is sre.MAXREPEAT else min(int(most), len(self.text) - at)
        )

        def taken(count: int) -> bool:
            self._step()
            return fits(kind, key(what), self.text[at + count], flags)

        if op == "MIN_REPEAT":
            count = 0
            while True:
                if count >= least:
                    end = rest(at + count)
                    if end is not None:
                        return end
                if count >= longest or not taken(count):
                    return None
                count += 1
        count = 0
        while count < longest and taken(count):
            count += 1
        if op == "POSSESSIVE_REPEAT":
            return rest(at + count) if count >= least else None
        while count >= least:
            self._step()
            end = rest(at + count)
            if end is not None:
                return end
            count -= 1
        return None

    def _looks(self, about: Any, at: int, flags: int) -> bool:
        direction, nodes = about
        if direction > 0:
            return self._run(list(nodes), 0, at, flags, lambda place: place) is not None
        width = nodes.getwidth()[0]
        if at < width:
            return False
        return (
            self._run(list(nodes), 0, at - width, flags, lambda p: p if p == at else None)
            is not None
        )

    def _is_at(self, where: str, at: int, flags: int) -> bool:
        text, end = self.text, len(self.text)
        if where == "AT_BEGINNING_STRING" or (where == "AT_BEGINNING" and not flags & re.M):
            return at == 0
        if where == "AT_BEGINNING":
            return at == 0 or text[at - 1] == "\n"
        if where == "AT_END_STRING":
            return at == end
        if where == "AT_END":
            return at == end or (text[at] == "\n" and (at == end - 1 or bool(flags & re.M)))
        before = at > 0 and fits_category("CATEGORY_WORD", text[at - 1], flags)
        after = at < end and fits_category("CATEGORY_WORD", text[at], flags)
        return (before != after) == (where == "AT_BOUNDARY")


def _anywhere(place: int) -> int:
    return place


def is_single(op: Any) -> bool:
    return op in _SINGLE


def key(about: Any) -> Any:
    """Return what a node says in a form that can be hashed."""
    return tuple(about) if isinstance(about, list) else about


def fits_category(name: str, character: str, flags: int) -> bool:
    if flags & re.ASCII and ord(character) > 127:
        return "_NOT_" in name
    return _CATEGORIES[name].match(character) is not None


@lru_cache(maxsize=100_000)
def fits(op: Any, about: Any, character: str, flags: int) -> bool:
    """Return whether one character is matched by one node."""
    same = {character}
    if flags & re.IGNORECASE:
        same |= {character.lower(), character.upper(), character.swapcase()}
    return any(_fits(str(op), about, each, flags) for each in same if len(each) == 1)


def _fits(op: str, about: Any, character: str, flags: int) -> bool:
    if op == "LITERAL":
        return ord(character) == about
    if op == "NOT_LITERAL":
        return ord(character) != about
    if op == "ANY":
        return bool(flags & re.DOTALL) or character != "\n"
    if op == "RANGE":
        return bool(about[0] <= ord(character) <= about[1])
    if op == "CATEGORY":
        return fits_category(str(about), character, flags)
    negated = str(about[0][0]) == "NEGATE"
    found = any(_fits(str(kind), what, character, flags) for kind, what in about[negated:])
    return found is not negated
