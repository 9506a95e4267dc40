"""Read JSON strictly. Any bytes give a value or problems, in linear time.

What programs would interpret differently, or what can't be stored, is a problem with its path.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32
# Keys and list items together.
MAX_VALUES = 20_000
# The range of a 64-bit integer.
_MAX_INTEGER = 2**63 - 1
_MAX_DIGITS = 20
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Unfit:
    """A placeholder for a number that not every program can represent."""

    why: str


class _Doubled(dict[str, Any]):
    """An object with repeated keys."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(key for key, _ in pairs)
        self.keys_twice = [key for key, count in counts.items() if count > 1]


@dataclass(frozen=True)
class Reading:
    """The result of reading. ``is_whole``: the value can be checked further despite problems.

    Otherwise the value must not be used.
    """

    value: Any
    problems: "list[Problem]"
    is_whole: bool = True


def read_json(raw: bytes | str) -> Reading:
    """Return the value of a JSON text and all its problems."""
    text, problems = decoded(raw)
    if problems:
        return Reading(None, problems, is_whole=False)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_whole,
            parse_float=_fraction,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        problem = Problem("", f"is not JSON: {error.msg} ({where})")
        return Reading(None, [problem], is_whole=False)
    except RecursionError:
        return Reading(None, [_too_deep("")], is_whole=False)
    walk = _Walk()
    return Reading(value, list(walk.problems(value, "", 0)), is_whole=not walk.is_cut)


def decoded(raw: bytes | str) -> "tuple[str, list[Problem]]":
    """Return the text of a file, without the byte order mark that some editors add."""
    too_large = Problem("", f"is larger than {MAX_BYTES} bytes")
    if isinstance(raw, str):
        # A character takes at least one byte.
        if len(raw) > MAX_BYTES or len(raw.encode(errors="surrogatepass")) > MAX_BYTES:
            return "", [too_large]
        text = raw
    elif len(raw) > MAX_BYTES:
        return "", [too_large]
    else:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            return "", [Problem("", f"is not UTF-8 (byte {error.start + 1})")]
    text = text.removeprefix("\ufeff")
    return (text, []) if text.strip() else ("", [Problem("", "is empty")])


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Doubled(pairs)


def _whole(digits: str) -> int | Unfit:
    if len(digits) <= _MAX_DIGITS and -_MAX_INTEGER - 1 <= int(digits) <= _MAX_INTEGER:
        return int(digits)
    return Unfit("is a whole number of more than 64 bits: write it as a text")


def _fraction(digits: str) -> float | Unfit:
    number = float(digits)
    return number if math.isfinite(number) else Unfit("is a number out of range")


def _constant(word: str) -> Unfit:
    return Unfit(f"is {word}, which is no number of JSON")


def _too_deep(path: str) -> "Problem":
    return Problem(path, f"is nested deeper than {MAX_DEPTH} levels")


class _Walk:
    """Walk through a value once, within the limits."""

    def __init__(self) -> None:
        self._values = 0

    @property
    def is_cut(self) -> bool:
        """Return whether the walk stopped at a limit."""
        return self._values > MAX_VALUES

    def problems(self, value: Any, path: str, depth: int) -> "Problems":
        if isinstance(value, Unfit):
            yield Problem(path, value.why)
        elif isinstance(value, str):
            yield from unstorable(value, path)
        elif isinstance(value, dict | list):
            if depth == MAX_DEPTH:
                yield _too_deep(path)
                return
            yield from self._inside(value, path, depth + 1)

    def _inside(self, value: dict[str, Any] | list[Any], path: str, depth: int) -> "Problems":
        too_many = self._values <= MAX_VALUES < self._values + len(value)
        self._values += len(value)
        if too_many:
            yield Problem(path, f"is where the document has more than {MAX_VALUES} values")
        if self.is_cut:
            return
        if isinstance(value, list):
            for place, each in enumerate(value):
                yield from self.problems(each, f"{path}[{place}]", depth)
            return
        if isinstance(value, _Doubled):
            for key in value.keys_twice:
                yield Problem(below(path, key), "stands there more than once")
        for key, each in value.items():
            yield from unstorable(key, below(path, key))
            yield from self.problems(each, below(path, key), depth)


def unstorable(text: str, path: str) -> "Problems":
    """Yield what PostgreSQL can't store."""
    if "\x00" in text:
        yield Problem(path, "has a NUL character, which can't be stored")
    if _SURROGATE.search(text):
        yield Problem(path, "has half a character (a lone surrogate), which can't be stored")


# Problems of memory documents with their paths, and the errors that carry them.

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


# The shapes of JSON values.

# ``str``: a text. A tuple: one of these texts. A function: a text; it returns what is wrong with
# it, or nothing. ``[shape]``: a list. A dict: an object; its known fields may be left out, and
# with ``ANY`` all of its fields have one shape.
Shape = Any
ANY = "*"


def kind(value: Any) -> str:
    """Return the type of a JSON value, for people."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return "a text"
    if isinstance(value, int | float | Unfit):
        return "a number"
    return "a list" if isinstance(value, list) else "an object"


def shape_problems(value: Any, shape: Shape, path: str) -> Problems:
    """Yield the places where a value hasn't its shape."""
    needed = type(shape) if isinstance(shape, dict | list) else str
    has_type = isinstance(value, needed)
    if not has_type:
        name = {dict: "an object", list: "a list", str: "a text"}[needed]
        yield Problem(path, f"must be {name}, not {kind(value)}")
    elif isinstance(shape, dict):
        for key, item in value.items():
            field = shape.get(ANY, shape.get(key))
            if field is not None:
                yield from shape_problems(item, field, below(path, key))
    elif isinstance(shape, list):
        for place, item in enumerate(value):
            yield from shape_problems(item, shape[0], f"{path}[{place}]")
    elif isinstance(shape, tuple):
        if value not in shape:
            yield Problem(path, f"must be one of {', '.join(shape)}, not {shown(value)}")
    elif shape is not str and (detail := shape(value)):
        yield Problem(path, detail)
