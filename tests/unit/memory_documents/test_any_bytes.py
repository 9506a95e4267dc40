"""Whatever bytes come: a document or listed problems, and work that grows with their number."""

from __future__ import annotations

import json
import sys
from datetime import timezone
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from memories_app.memory_document_format.envelope import (
    MAX_LENGTH,
    content_read,
    envelope_read,
    envelope_saved,
    read_duration,
    read_stamp,
    stamp,
)
from memories_app.memory_document_format.names import (
    CATEGORIES,
    Pattern,
    name_for,
    name_refused,
    newest,
    numbered,
)
from memories_app.memory_document_format.strict_json import MAX_VALUES, MemoryDocumentNameError
from tests.fuzz.damage import FACTOR
from tests.unit.memory_documents.examples import CONTENTS, document, envelope_problems
from tests.unit.memory_documents.test_envelope import NOW

pytestmark = pytest.mark.slow

MANY = settings(max_examples=40 * FACTOR, deadline=None)
ANY_TEXT = st.text(st.characters(), max_size=12)
KEYS = st.sampled_from(
    ["meta", "content", "created", "updated", "category", "summary", "session_id"]
    + [field for content in CONTENTS.values() for field in content]
)
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | ANY_TEXT
    | st.sampled_from([*CATEGORIES, "accepted", "100%", "2025-11-25T10:30:00Z"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | ANY_TEXT, inner, max_size=5),
    max_leaves=25,
)
STORABLE = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), max_size=20
)


def checked(raw: bytes | str, category: str = "") -> None:
    """A document that can be stored, or problems that can be shown."""
    problems = envelope_problems(raw, category=category)
    if not problems:
        envelope = envelope_read(raw, category=category)
        assert "\x00" not in json.dumps(envelope.value, ensure_ascii=False)
        envelope.text.encode()
        assert envelope.created <= envelope.changed or "updated" in envelope.meta
        assert isinstance(envelope.is_completed, bool)
    for problem in problems:
        str(problem).encode()
        assert str(problem).isprintable()
        assert len(str(problem)) < 4_000


@st.composite
def damaged_documents(draw: st.DrawFn) -> bytes:
    """A good document of which a few bytes were changed."""
    raw = bytearray(json.dumps(document(draw(st.sampled_from(CATEGORIES))), indent=2).encode())
    for place in draw(st.lists(st.integers(0, len(raw) - 1), max_size=4)):
        raw[place] = draw(st.integers(0, 255))
    return bytes(raw)


GOOD_OUTSIDE = st.builds(
    lambda category, content, other: {**document(category), "content": content, "other": other},
    st.sampled_from(CATEGORIES),
    ANY_JSON,
    ANY_JSON,
)


@settings(max_examples=100 * FACTOR, deadline=None)
@given(
    st.binary(max_size=200)
    | damaged_documents()
    | st.builds(json.dumps, ANY_JSON | GOOD_OUTSIDE, ensure_ascii=st.booleans()),
    st.sampled_from(["", *CATEGORIES]),
)
def test_anything_is_a_document_or_problems(raw: bytes | str, category: str) -> None:
    checked(raw, category)


@MANY
@given(
    st.sampled_from(CATEGORIES),
    st.dictionaries(
        STORABLE.filter(lambda key: key not in {f for c in CONTENTS.values() for f in c}),
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | STORABLE
        | st.floats(allow_nan=False, allow_infinity=False) | st.lists(STORABLE, max_size=3),
        max_size=6,
    ),
    st.none() | STORABLE,
)  # fmt: skip
def test_what_is_saved_is_read_as_it_was_given(
    category: str, content: dict[str, Any], session_id: str | None
) -> None:
    given_content = content_read(category, json.dumps(content)).content
    saved = envelope_saved(
        None, category=category, summary="x", content=given_content, session_id=session_id, now=NOW
    )
    assert repr(json.loads(saved.text)["content"]) == repr(content)
    assert envelope_read(saved.text.encode(), category=category) == saved


@pytest.mark.parametrize(
    "raw",
    [
        '{"' + "k" * 1_000_000 + '": [' + "1," * 10_000 + "NaN]}",
        '{"a":{"b":["' + "\\ud800" * 100_000 + '"]}}',
        "{" + ",".join('"a": NaN' for _ in range(19_000)) + "}",
        "[" + ",".join("NaN" for _ in range(MAX_VALUES)) + "]",
        "[" + ",".join("9" * 4_000 for _ in range(250)) + "]",
        "[0." + "9" * 1_000_000 + "]",
        "[1e" + "9" * 1_000_000 + "]",
        '"' + '\\"' * 500_000,
        "[" * 1_000_000,
        '{"a":' * 200_000,
        " " * 1_000_000,
        b"\xff" * 1_000_000,
        b"\xf0\x9f" * 500_000,
    ],
    ids=range(13),
)
def test_the_worst_of_a_megabyte_is_told_in_no_more_than_its_size(raw: bytes | str) -> None:
    """Paths are shortened, so that many problems below a long key don't multiply it."""
    problems = envelope_problems(raw)
    assert problems
    assert sum(len(str(problem)) for problem in problems) < 3_000_000


def calls_for(count: int) -> int:
    """How many functions are called for a document of so many wrong values."""
    content = {f"f{number}": {"params": [number, "\x01"]} for number in range(count)}
    text = json.dumps(document("interfaces", content={"functions": content}))
    calls = 0

    def count_call(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count_call)
    try:
        problems = envelope_problems(text)
    finally:
        sys.setprofile(None)
    assert len(problems) == count
    return calls


def test_the_work_grows_with_the_document_and_no_faster() -> None:
    assert calls_for(1_000) < 11 * calls_for(100)
    assert calls_for(4_000) < 4.4 * calls_for(1_000)


@MANY
@given(ANY_TEXT | st.text(max_size=300), st.sampled_from(CATEGORIES))
def test_any_identifier_is_a_name_of_one_file_or_refused(identifier: str, category: str) -> None:
    told = ""
    try:
        name = name_for(category, identifier, NOW.date())
    except MemoryDocumentNameError as error:
        told = str(error)
    if told:
        assert told.isprintable()
        return
    assert name_refused(name) == ""
    assert not set(name) & set("/\\\x00")
    assert not name.startswith(".")
    assert len(f"{name}.999999999.json".encode()) <= 255
    assert name_for(category, name, NOW.date()) == name or category == "context"
    assert newest(category, identifier, [name, "2001-01-01-" + name]) is not None or (
        identifier != name
    )
    assert numbered(name, [name, f"{name}.2", f"{name}.x"]) == f"{name}.3"


@MANY
@given(st.text(alphabet="ab*?[]!-^.\\", max_size=30) | ANY_TEXT, ANY_TEXT)
def test_any_pattern_fits_or_does_not_or_is_refused(text: str, name: str) -> None:
    told = ""
    try:
        assert Pattern(text).fits("context", name) in (True, False)
    except MemoryDocumentNameError as error:
        told = str(error)
    assert not told or told.isprintable()


@MANY
@given(ANY_TEXT | st.from_regex(r"[0-9]{1,12}[smhdw]"))
def test_any_duration_is_read_or_refused(text: str) -> None:
    told = "no duration"
    try:
        assert read_duration(text) <= MAX_LENGTH
    except ValueError as error:
        told = str(error)
    assert "duration" in told or "longer" in told


@MANY
@given(st.datetimes(min_value=NOW.replace(year=2, tzinfo=None), max_value=NOW.replace(
    year=9998, tzinfo=None), timezones=st.just(timezone.utc)))  # fmt: skip
def test_a_time_that_is_written_is_read_again(at: Any) -> None:
    assert read_stamp(stamp(at)) == at
