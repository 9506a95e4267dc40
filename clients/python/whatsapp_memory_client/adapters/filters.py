"""Namespaces, and the filters of values, as LangGraph's stores have them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import ge, gt, le, lt
from typing import Any
from urllib.parse import unquote

ORDER = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}


def joined(namespace: Sequence[str]) -> str:
    """The server's form of a namespace."""
    return ".".join(re.sub(r"[%./]", lambda m: f"%{ord(m[0]):02X}", each) for each in namespace)


def levels(namespace: str) -> tuple[str, ...]:
    return tuple(unquote(level) for level in namespace.split("."))


def index_of(paths: Any) -> Any:
    """The server's form of ``index``: a list counts as each of its entries, so that ``tags[*]`` is
    ``tags``; ``$`` is everything."""
    if not paths:
        return False
    return None if "$" in paths else [re.sub(r"\[[^]]*\]", "", path) for path in paths]


def fits(value: Any, wanted: Any) -> bool:
    """Whether a value is what is wanted, which may hold operators. Objects may have more fields."""
    if isinstance(wanted, Mapping) and any(name.startswith("$") for name in wanted):
        return all(_holds(value, name, other) for name, other in wanted.items())
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and all(
            fits(value.get(name), other) for name, other in wanted.items()
        )
    return bool(value == (list(wanted) if isinstance(wanted, tuple) else wanted))


def _holds(value: Any, operator: str, other: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return fits(value, other) == (operator == "$eq")
    if operator not in ORDER:
        raise ValueError(f"Unknown operator {operator!r}: there are $eq, $ne, {', '.join(ORDER)}.")
    # What isn't there, or is of another kind, is neither more nor less.
    with suppress(TypeError):
        return bool(ORDER[operator](value, other))
    return False


def is_like(namespace: Sequence[str], end: str, path: Sequence[str]) -> bool:
    part = namespace[: len(path)] if end == "prefix" else namespace[-len(path) :]
    pairs = zip(part, path, strict=False)
    return len(namespace) >= len(path) and all(one in (level, "*") for level, one in pairs)
