"""What is signed: rows that differ in anything never have the same bytes."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from memoryproject.foundation.audit.audit_logfile import (
    Fields,
    canonical,
    is_signed,
    line_head,
    line_of,
    line_read,
    seal_of,
    sign,
    signed_bytes,
    utc_text,
)

TEXT = st.text(max_size=12) | st.sampled_from(["", '"', '","', "\\", "\n", "a", "שלום", "\u2028"])
NUMBER = st.integers(1, 2**63 - 1) | st.integers(1, 3)
ZONES = st.sampled_from([timezone.utc, timezone(timedelta(hours=5, minutes=30))])
TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=ZONES)
DETAILS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
).map(json.dumps)
ROWS = st.builds(
    Fields,
    seq=NUMBER,
    id=NUMBER,
    at=TIMES,
    action=TEXT,
    actor_kind=TEXT,
    actor=TEXT,
    chat=TEXT,
    object_type=TEXT,
    object_id=TEXT,
    content_hash=TEXT,
    details=DETAILS,
)


@given(ROWS)
def test_the_bytes_tell_every_field_back(row: Fields) -> None:
    """So two rows have the same bytes only where every field is the same."""
    purpose, *parts = json.loads(signed_bytes("event", *canonical(row)))
    assert purpose == "event"
    at = datetime.fromisoformat(parts[2].replace("Z", "+00:00"))
    assert Fields(*[*parts[:2], at, *parts[3:]]) == row


@given(ROWS, TEXT, TEXT)
def test_the_seal_depends_on_key_predecessor_and_purpose(row: Fields, one: str, two: str) -> None:
    assert (seal_of("key", one, row) == seal_of("key", two, row)) == (one == two)
    assert seal_of("key", one, row) != seal_of("other", one, row)
    assert sign("key", "head", one) != sign("key", "event", one)
    assert is_signed(sign("key", "head", one), "key", "head", one)
    assert not is_signed(sign("key", "head", one), "key", "head", one + "x")


@given(ROWS)
def test_a_line_is_one_json_object_with_every_field(row: Fields) -> None:
    line = line_of(row, "ab" * 32)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    found = line_read(line)
    assert found is not None
    assert found["seal"] == "ab" * 32
    assert set(found) == {*Fields._fields, "seal"}
    assert found["actor"] == row.actor
    head = line_head(line)
    assert head is not None
    assert head[:2] == (row.seq, row.id)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_line_or_not_and_never_an_error(junk: bytes) -> None:
    line_head(junk)
    line_head(junk + b"\n")


def test_times_are_written_in_utc_with_microseconds() -> None:
    at = datetime(2026, 1, 10, 14, 0, tzinfo=timezone(timedelta(hours=2)))
    assert utc_text(at) == "2026-01-10T12:00:00.000000Z"
    with pytest.raises(ValueError, match="without a zone"):
        utc_text(datetime(2026, 1, 10))
