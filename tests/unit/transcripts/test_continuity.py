"""Where the messages of files stand in a stored conversation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.transcript_files.continuity import Kind, Standing, standing

SIGNS = st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=12)


def place(stored: str, told: str) -> Standing:
    return standing(stored=[*map(str.encode, stored)], batch=[*map(str.encode, told)])


def test_nothing_stored_is_new() -> None:
    assert place("", "abcd") == Standing(Kind.NEW, 0, 0)
    assert place("xy", "abcd") == Standing(Kind.NEW, 0, 2)


def test_the_beginning_that_repeats_the_stored_end_is_an_overlap() -> None:
    assert place("xyab", "abcd") == Standing(Kind.OVERLAP, 2, 2)
    assert place("abab", "ababcd") == Standing(Kind.OVERLAP, 4, 0)
    assert place("xya", "abcd") == Standing(Kind.OVERLAP, 1, 2)


def test_what_is_stored_as_a_whole_is_recognised() -> None:
    assert place("xyabcd", "abcd") == Standing(Kind.STORED, 4, 2)
    assert place("abcdxy", "abcd") == Standing(Kind.STORED, 4, 0)
    assert place("xyab", "ab") == Standing(Kind.STORED, 2, 2)


def test_a_single_exchange_that_was_said_before_is_left_to_people() -> None:
    assert place("abxy", "ab") == Standing(Kind.AMBIGUOUS, 2, 0)


def test_a_changed_message_is_found() -> None:
    assert place("abcd", "aXcdef") == Standing(Kind.DIFFERS, 1, 1)
    assert place("xyabcdefgh", "abcdXfgh") == Standing(Kind.DIFFERS, 4, 6)


def test_a_left_out_exchange_is_found() -> None:
    assert place("abcdefghij", "abefghijkl").kind is Kind.DIFFERS


def test_a_greeting_said_again_is_no_change() -> None:
    assert place("hiabcdef", "himnopqr").kind is Kind.NEW


def test_files_that_begin_before_the_stored_are_found() -> None:
    assert place("efgh", "abcdefgh") == Standing(Kind.EARLIER, 4, 0)


@given(SIGNS, SIGNS)
def test_it_never_says_that_something_is_stored_that_is_not(
    stored: list[bytes], told: list[bytes]
) -> None:
    found = standing(stored=stored, batch=told)
    if found.kind in (Kind.STORED, Kind.AMBIGUOUS, Kind.OVERLAP):
        assert stored[found.stored : found.stored + found.position] == told[: found.position]
    if found.kind is Kind.OVERLAP:
        assert found.stored + found.position == len(stored)
    if found.kind is Kind.NEW:
        ends = [stored[len(stored) - size :] for size in range(1, len(stored) + 1)]
        assert told[: len(stored)] not in ends or not stored
        assert not any(told[: len(end)] == end for end in ends)


@given(SIGNS, st.lists(st.sampled_from([b"d", b"e"]), min_size=1))
def test_what_follows_the_stored_is_added_whatever_is_repeated(
    stored: list[bytes], new: list[bytes]
) -> None:
    found = standing(stored=stored, batch=[*stored, *new])
    assert found.position == len(stored)
