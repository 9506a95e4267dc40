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
from functools import lru_cache, partial
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as sre, _parser as parser
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
SINGLE = "SINGLE"
_SINGLE = {sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN, sre.RANGE, sre.CATEGORY}


class TooManyStepsError(Exception):
    """The expression takes more steps than the limit."""


@lru_cache(maxsize=4)
def tree_of(pattern: re.Pattern[str]) -> Any:
    """Many texts are tried in a row with the same expression."""
    return parser.parse(pattern.pattern, pattern.flags)


class Characters(dict[str, bool]):
    """Whether a character is matched by a node, found out once for each."""

    def __init__(self, op: Any, about: Any, flags: int) -> None:
        self._node = op, key(about)
        self._flags = flags

    def __missing__(self, character: str) -> bool:
        found = self[character] = fits(*self._node, character, self._flags)
        return found


class Branches(dict[str, tuple[list[tuple[int, Nodes]], int]]):
    """By the next character, which is "" at the end: the alternatives that may match, each with
    the number of those before it that fail at this character, and how many fail after the last."""

    def __init__(self, alternatives: list[Nodes]) -> None:
        self._alternatives = alternatives

    def __missing__(self, character: str) -> tuple[list[tuple[int, Nodes]], int]:
        tried, failing = [], 0
        for nodes in self._alternatives:
            if nodes and nodes[0][0] == SINGLE and not (character and nodes[0][1][character]):
                failing += 1
            else:
                tried.append((failing, nodes))
                failing = 0
        found = self[character] = (tried, failing)
        return found


@lru_cache(maxsize=4)
def program_of(pattern: re.Pattern[str]) -> Nodes:
    """The tree, with all that doesn't depend on a text found out already."""
    return _compiled(tree_of(pattern), pattern.flags)


def _compiled(nodes: Any, flags: int) -> Nodes:
    return tuple(_node(op, about, flags) for op, about in nodes)


def _node(op: Any, about: Any, flags: int) -> tuple[str, Any]:
    if is_single(op):
        return SINGLE, Characters(op, about, flags)
    name = str(op)
    if name.endswith("_REPEAT"):
        least, most, nodes = about
        bounds = int(least), int(most), name
        if len(nodes) == 1 and is_single(nodes[0][0]):
            ((op, about),) = nodes
            return "REPEAT_SINGLE", (*bounds, Characters(op, about, flags))
        return "REPEAT", (*bounds, _compiled(nodes, flags))
    if name == "SUBPATTERN":
        group, added, removed, nodes = about
        return name, (group, _compiled(nodes, (flags | added) & ~removed))
    if name == "BRANCH":
        return name, Branches([_compiled(nodes, flags) for nodes in about[1]])
    if name in ("ASSERT", "ASSERT_NOT"):
        direction, nodes = about
        width = nodes.getwidth()[0] if direction < 0 else 0
        return "ASSERT", (name == "ASSERT", width, _compiled(nodes, flags))
    if name == "ATOMIC_GROUP":
        return name, _compiled(about, flags)
    if name == "AT":
        return name, (str(about), flags)
    if name == "GROUPREF":
        return name, about
    raise NotImplementedError(name)


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
        program = program_of(self.pattern)
        everywhere = everywhere and not whole
        found, at = [], 0
        while at <= len(self.text):
            self.groups = {}
            end = self._run(program, 0, self._whole if whole else _anywhere, at)
            if end is not None:
                found.append((at, end))
            at = at + 1 if end is None else max(end, at + 1)
            if not everywhere:
                break
        return found

    def _whole(self, place: int) -> int | None:
        return place if place == len(self.text) else None

    def _step(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > self.limit:
            raise TooManyStepsError

    def _run(self, nodes: Nodes, number: int, then: Then, at: int) -> int | None:
        """Match the nodes from ``number`` on, and ``then`` what follows; return the end."""
        while number < len(nodes):
            name, about = nodes[number]
            self.steps += 1
            if self.steps > self.limit:
                raise TooManyStepsError
            number += 1
            if name != SINGLE:
                rest = then
                if number < len(nodes):
                    rest = partial(self._run, nodes, number, then)
                return _MATCHING[name](self, about, at, rest)
            if at >= len(self.text) or not about[self.text[at]]:
                return None
            at += 1
        return then(at)

    def _branch(self, branches: Branches, at: int, rest: Then) -> int | None:
        tried, failing = branches[self.text[at : at + 1]]
        for before, nodes in tried:
            self._step(before)
            end = self._run(nodes, 0, rest, at)
            if end is not None:
                return end
        self._step(failing)
        return None

    def _at(self, about: tuple[str, int], at: int, rest: Then) -> int | None:
        return rest(at) if self._is_at(*about, at) else None

    def _assert(self, about: tuple[bool, int, Nodes], at: int, rest: Then) -> int | None:
        wanted, width, nodes = about
        if width > at:
            seen = False
        elif width:
            seen = self._run(nodes, 0, lambda p: p if p == at else None, at - width) is not None
        else:
            seen = self._run(nodes, 0, _anywhere, at) is not None
        return rest(at) if seen == wanted else None

    def _atomic(self, nodes: Nodes, at: int, rest: Then) -> int | None:
        end = self._run(nodes, 0, _anywhere, at)
        return None if end is None else rest(end)

    def _reference(self, group: int, at: int, rest: Then) -> int | None:
        start, stop = self.groups.get(group, (0, -1))
        same = stop >= start and self.text.startswith(self.text[start:stop], at)
        return rest(at + stop - start) if same else None

    def _group(self, about: tuple[int | None, Nodes], at: int, rest: Then) -> int | None:
        group, nodes = about
        if group is None:
            return self._run(nodes, 0, rest, at)
        before = self.groups.get(group)

        def close(place: int) -> int | None:
            kept = self.groups.get(group)
            self.groups[group] = (at, place)
            end = rest(place)
            if end is None:
                self.groups.pop(group)
                if kept is not None:
                    self.groups[group] = kept
            return end

        end = self._run(nodes, 0, close, at)
        if end is None and before is not None:
            self.groups[group] = before
        return end

    def _repeat(self, about: tuple[int, int, str, Nodes], at: int, rest: Then) -> int | None:
        if about[2] == "POSSESSIVE_REPEAT":
            end = self._again(about, 0, -1, _anywhere, at)
            return None if end is None else rest(end)
        return self._again(about, 0, -1, rest, at)

    def _again(
        self, about: tuple[int, int, str, Nodes], count: int, before: int, rest: Then, at: int
    ) -> int | None:
        least, most, name, nodes = about

        def more() -> int | None:
            if count >= most or (count >= least and at == before):
                return None
            return self._run(nodes, 0, partial(self._again, about, count + 1, at, rest), at)

        self._step()
        if count < least:
            return more()
        if name == "MIN_REPEAT":
            end = rest(at)
            return more() if end is None else end
        end = more()
        return rest(at) if end is None else end

    def _repeat_single(
        self, about: tuple[int, int, str, Characters], at: int, rest: Then
    ) -> int | None:
        """As `re` does: without recursion, all characters that fit are taken first."""
        least, most, name, fitting = about
        longest = min(most, len(self.text) - at)
        count = 0
        if name == "MIN_REPEAT":
            while True:
                if count >= least:
                    end = rest(at + count)
                    if end is not None:
                        return end
                if count >= longest:
                    return None
                self._step()
                if not fitting[self.text[at + count]]:
                    return None
                count += 1
        while count < longest and fitting[self.text[at + count]]:
            count += 1
        # One look at each that was taken, and one at the next.
        self._step(count + (count < longest))
        if name == "POSSESSIVE_REPEAT":
            return rest(at + count) if count >= least else None
        while count >= least:
            self._step()
            end = rest(at + count)
            if end is not None:
                return end
            count -= 1
        return None

    def _is_at(self, where: str, flags: int, at: int) -> bool:
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


_MATCHING: dict[str, Callable[[Matcher, Any, int, Then], int | None]] = {
    "ASSERT": Matcher._assert,
    "AT": Matcher._at,
    "ATOMIC_GROUP": Matcher._atomic,
    "BRANCH": Matcher._branch,
    "GROUPREF": Matcher._reference,
    "REPEAT": Matcher._repeat,
    "REPEAT_SINGLE": Matcher._repeat_single,
    "SUBPATTERN": Matcher._group,
}


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
