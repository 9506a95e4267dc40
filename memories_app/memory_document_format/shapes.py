"""Small composable checks of JSON values.

Unknown fields are kept unchanged; a known field that is present must have its type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memories_app.memory_document_format.problems import Problem, Problems, below, shown
from memories_app.memory_document_format.strict_json import Unfit

Check = Callable[[Any, str], Problems]


def kind(value: Any) -> str:
    """Return the type of a JSON value, for people."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return "a text"
    if isinstance(value, int | float | Unfit):
        return "a number"
    return "a list" if isinstance(value, list) else "an object"


def text(value: Any, path: str) -> Problems:
    if not isinstance(value, str):
        yield Problem(path, f"must be a text, not {kind(value)}")


def one_of(*words: str) -> Check:
    def check(value: Any, path: str) -> Problems:
        if not isinstance(value, str):
            yield from text(value, path)
        elif value not in words:
            yield Problem(path, f"must be one of {', '.join(words)}, not {shown(value)}")

    return check


def list_of(each: Check) -> Check:
    def check(value: Any, path: str) -> Problems:
        if not isinstance(value, list):
            yield Problem(path, f"must be a list, not {kind(value)}")
            return
        for place, item in enumerate(value):
            yield from each(item, f"{path}[{place}]")

    return check


def object_of(each: Check) -> Check:
    """Check an object with any keys, all of whose values pass the same check."""

    def check(value: Any, path: str) -> Problems:
        if not isinstance(value, dict):
            yield Problem(path, f"must be an object, not {kind(value)}")
            return
        for key, item in value.items():
            yield from each(item, below(path, key))

    return check


def fields(known: Mapping[str, Check], *, required: Mapping[str, Check] | None = None) -> Check:
    """Check an object's known fields that are present."""
    must = required or {}

    def check(value: Any, path: str) -> Problems:
        if not isinstance(value, dict):
            yield Problem(path, f"must be an object, not {kind(value)}")
            return
        for key in must:
            if key not in value:
                yield Problem(below(path, key), "is missing")
        for key, item in value.items():
            field = must.get(key) or known.get(key)
            if field is not None:
                yield from field(item, below(path, key))

    return check
