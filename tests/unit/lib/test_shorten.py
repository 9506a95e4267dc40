"""Texts are cut where a word ends, and never inside what is read as one character."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings, strategies as st

from memoryproject.foundation.admin_kit.stamped_form import digest_of, read_stamp, stamp_of
from memoryproject.foundation.commands import ProgressBar
from memoryproject.foundation.text.characters import cut_at_word, is_mark
from tests.tables import table

TEXTS = st.one_of(
    st.lists(
        st.sampled_from(["ab", " ", "e\u0301", "👩‍👩‍👧", "👍🏽", "🇮🇱", "שָׁ", "1\ufe0f\u20e3"])
    ).map("".join),
    st.text(),
)


@table(
    ("text", "longest", "mark", "shown"),
    [
        ("one two", 7, "…", "one two"),
        ("one two three", 8, "…", "one two…"),
        ("one two three", 7, "…", "one…"),
        ("one two three", 10, "...", "one two..."),
        ("one two three", 9, "...", "one..."),
        ("abcdefgh", 5, "...", "ab..."),
        ("e\u0301e\u0301e\u0301", 4, "…", "e\u0301…"),
    ],
)
def test_where_it_is_cut(text: str, longest: int, mark: str, shown: str) -> None:
    assert cut_at_word(text, longest, mark=mark) == shown


@given(TEXTS, st.integers(min_value=10, max_value=40), st.sampled_from(["…", "..."]))
@settings(deadline=None)
def test_what_is_shown_fits_and_begins_the_text(text: str, longest: int, mark: str) -> None:
    shown = cut_at_word(text, longest, mark=mark)
    assert len(shown) <= longest
    if shown != text:
        head = shown.removesuffix(mark)
        assert text.startswith(head)
        assert len(text) > longest


@given(TEXTS, st.integers(min_value=10, max_value=40))
@settings(deadline=None)
def test_no_character_is_torn(text: str, longest: int) -> None:
    shown = cut_at_word(text, longest)
    rest = text[len(shown.removesuffix("…")) :]
    # A text of nothing but marks has no place to cut.
    if shown != text and any(not is_mark(each) for each in text[: longest - 1]):
        assert not is_mark(rest[0])
        assert not shown.endswith("\u200d…")


# The progress bar of long commands.


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_it_draws_on_a_terminal_and_ends_its_line() -> None:
    screen = Screen()
    bar = ProgressBar(screen)
    for done in range(4):
        bar(done, 3)
    drawn = screen.getvalue().split("\r")
    assert drawn[2] == "[##########....................] 33% (1/3)"
    assert drawn[-1] == "[##############################] 100% (3/3)\n"


def test_it_is_silent_anywhere_else_and_with_nothing_to_do() -> None:
    file, screen = io.StringIO(), Screen()
    ProgressBar(file)(1, 3)
    ProgressBar(screen)(0, 0)
    assert file.getvalue() == screen.getvalue() == ""


# Stamps say whether two values are the same to who reads them in a form.


AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=timezone.utc)


@table(
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


@table(
    "text", ["", "{", "[]", "1", "null", "{}", json.dumps({"colour": "x"}), "\x00", "[" * 99_999]
)
def test_what_is_no_stamp_of_these_fields_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no stamp"):
        read_stamp(text, ["name"])
