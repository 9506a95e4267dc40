"""Stamps say whether two values are the same to who reads them in a form."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from memoryproject.foundation.admin_kit.stamped_form import digest_of, read_stamp, stamp_of

AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a\r\nb", "a\nb"),
        (AT, AT.replace(microsecond=0)),
        (AT, AT.astimezone(timezone(timedelta(hours=2)))),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (("a", "b"), ["a", "b"]),
        (UUID(int=1), str(UUID(int=1))),
    ],
)
def test_what_reads_the_same_is_the_same(one: Any, other: Any) -> None:
    assert digest_of(one) == digest_of(other)


def test_what_reads_otherwise_is_another() -> None:
    values = ["", "1", 1, True, None, [], ["a", "b"], ["b", "a"], "a b", AT, "\ud800"]
    assert len({digest_of(value) for value in values}) == len(values)


def test_a_stamp_is_read_back_by_its_fields() -> None:
    stamp = stamp_of({"name": "secret", "colour": "red"})
    assert "secret" not in stamp
    assert read_stamp(stamp, ["colour", "name"]) == {
        "name": digest_of("secret"),
        "colour": digest_of("red"),
    }


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "1", "null", "{}", json.dumps({"colour": "x"}), "\x00", "[" * 99_999]
)
def test_what_is_no_stamp_of_these_fields_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no stamp"):
        read_stamp(text, ["name"])
