"""Damage documents as no sender should: wrong types at each place, and JSON that is hardly JSON."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

from hypothesis import HealthCheck, settings, strategies as st

# `make fuzz` multiplies the number of examples of each test.
FACTOR = int(os.environ.get("FUZZ_FACTOR", "1"))

# Texts that stand for a value, so that they need not be what `json.dumps` would write.
PIECES = (
    *("null", "true", "0", "-0.0", "-1", "1e400", "1E-999", "1.7976931348623159e308"),
    *("NaN", "-Infinity", "9" * 400, "9" * 5_000, "[]", "{}", "[[]]"),
    *('""', '"\\u0000"', '"a\\u0000b"', '"\\ud83d"', '"\\ude00\\ud83d"', '"\\u202e\\u2066"'),
    *('"\x7f\u2028\ufeff"', '"' + "x" * 70_000 + '"', '"972500000000@c.us"', '"1700000000"'),
    *('{"a": 1, "a": {"b": []}}', '{"": "", "\\u0000": 1, "\\ud83d": 2}'),
    *("[" * 400 + "]" * 400, "[" * 100_000, '{"a":' * 5_000 + "1" + "}" * 5_000),
)


def budget(examples: int) -> settings:
    """Return the settings of a test: so many examples, or a multiple of it in `make fuzz`."""
    return settings(
        max_examples=examples * FACTOR, deadline=None, suppress_health_check=list(HealthCheck)
    )


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a document."""
    found = [path] if path else []
    members: Any = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for key, member in members:
        found += places(member, (*path, key))
    return found


def damaged(documents: list[Any]) -> st.SearchStrategy[bytes]:
    """Return a strategy for one of these documents with one to three faults, as bytes."""

    @st.composite
    def draw_one(draw: st.DrawFn) -> bytes:
        document = copy.deepcopy(draw(st.sampled_from(documents)))
        pieces: dict[str, str] = {}
        for number in range(draw(st.integers(1, 3))):
            paths = places(document)
            if not paths:
                break
            *above, last = draw(st.sampled_from(paths))
            holder = document
            for key in above:
                holder = holder[key]
            if draw(st.integers(0, 3)) == 0:
                del holder[last]
            else:
                pieces[f'"@{number}@"'] = draw(st.sampled_from(PIECES))
                holder[last] = f"@{number}@"
        text = json.dumps(document, ensure_ascii=draw(st.booleans()))
        for mark, piece in pieces.items():
            text = text.replace(mark, piece)
        return _bytes_damaged(draw, text.encode("utf-8", "surrogatepass"))

    return draw_one()


def _bytes_damaged(draw: st.DrawFn, raw: bytes) -> bytes:
    """Mostly leave the bytes as they are; else cut, mark or change them."""
    what = draw(st.integers(0, 9))
    if what == 0:
        return raw[: draw(st.integers(0, len(raw)))]
    if what == 1:
        return b"\xef\xbb\xbf" + raw
    if what == 2:
        return raw.decode("utf-8", "replace").encode("utf-16")
    if what == 3:
        changed = bytearray(raw)
        for place in draw(st.lists(st.integers(0, max(len(raw) - 1, 0)), max_size=3)):
            changed[place : place + 1] = bytes([draw(st.integers(0, 255))])
        return bytes(changed)
    return raw
