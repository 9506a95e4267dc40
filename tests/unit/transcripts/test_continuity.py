"""Where the messages of files stand in a stored conversation."""

from __future__ import annotations

from hypothesis import given, strategies as st

from sessions_app.transcript_files.continuity import (
    Kind,
    Signs,
    Standing,
    batch_position,
    standing_as_given,
)

SIGNS = st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=12)


def signs(exact: list[bytes], loose: list[bytes] | None = None) -> Signs:
    return Signs(exact, exact if loose is None else loose)


def place(stored: str, told: str, *, follows: bool = False) -> Standing:
    """Each letter is a message; capitals differ from small ones in form only."""
    there, batch = ([letter.encode() for letter in text] for text in (stored, told))
    return batch_position(
        stored=signs(there, [sign.lower() for sign in there]),
        batch=signs(batch, [sign.lower() for sign in batch]),
        follows=follows,
    )


def test_nothing_stored_is_new() -> None:
    assert place("", "abcd") == Standing(Kind.NEW, 0, 0)
    assert place("xy", "abcd") == Standing(Kind.NEW, 0, 2)
    assert place("xy", "abcd", follows=True) == Standing(Kind.NEW, 0, 2)


def test_two_exchanges_that_repeat_the_stored_end_are_an_overlap() -> None:
    assert place("xyabcd", "abcdef") == Standing(Kind.OVERLAP, 4, 2, 4)
    assert place("abababcd", "abcdxy") == Standing(Kind.OVERLAP, 4, 4, 4)


def test_a_batch_that_says_it_follows_and_repeats_the_end_is_left_to_people() -> None:
    assert place("xyabcd", "abcdef", follows=True) == Standing(Kind.AMBIGUOUS, 4, 2, 4)
    assert place("xyab", "ab", follows=True) == Standing(Kind.AMBIGUOUS, 2, 2, 2)
    assert place("abcdxy", "abcd", follows=True) == Standing(Kind.AMBIGUOUS, 4, 0)


def test_one_exchange_or_the_same_one_again_and_again_is_left_to_people() -> None:
    assert place("xyab", "abcd") == Standing(Kind.AMBIGUOUS, 2, 2, 2)
    assert place("xya", "abcd") == Standing(Kind.AMBIGUOUS, 1, 2, 1)
    assert place("xyab", "ab") == Standing(Kind.AMBIGUOUS, 2, 2, 2)
    assert place("abxy", "ab") == Standing(Kind.AMBIGUOUS, 2, 0)
    assert place("abab", "ababcd") == Standing(Kind.AMBIGUOUS, 4, 0, 4)


def test_two_exchanges_that_were_said_again_before_are_left_to_people() -> None:
    assert place("abcdxyabcd", "abcdef").kind is Kind.AMBIGUOUS


def test_what_is_stored_as_a_whole_is_recognised() -> None:
    assert place("xyabcd", "abcd") == Standing(Kind.STORED, 4, 2, 4)
    assert place("abcdxy", "abcd") == Standing(Kind.STORED, 4, 0)


def test_what_differs_in_form_only_is_found() -> None:
    assert place("abcd", "ABCD") == Standing(Kind.FORM, 0, 0, 4)
    assert place("xyabcd", "abCdef") == Standing(Kind.FORM, 2, 4, 4)
    assert place("xyab", "AB").kind is Kind.AMBIGUOUS


def test_a_changed_message_is_found() -> None:
    assert place("abcd", "azcdef") == Standing(Kind.DIFFERS, 1, 1)
    assert place("xyabcdefgh", "abcdzfgh") == Standing(Kind.DIFFERS, 4, 6)


def test_a_left_out_exchange_is_found() -> None:
    assert place("abcdefghij", "abefghijkl").kind is Kind.DIFFERS


def test_a_greeting_said_again_is_no_change() -> None:
    assert place("hiabcdef", "himnopqr").kind is Kind.NEW


def test_files_that_begin_before_the_stored_are_found() -> None:
    assert place("efgh", "abcdefgh") == Standing(Kind.EARLIER, 4, 0)
    assert place("ef", "abefgh") == Standing(Kind.EARLIER, 2, 0)
    assert place("ef", "abcdef") == Standing(Kind.EARLIER, 4, 0)


def test_an_overlap_that_the_caller_gives_must_be_one() -> None:
    stored, batch = signs([b"x", b"y"], [b"x", b"y"]), signs([b"X", b"y", b"z"], [b"x", b"y", b"z"])
    assert standing_as_given(stored=stored, batch=batch, overlap=2) == Standing(
        Kind.OVERLAP, 2, 0, 2
    )
    assert standing_as_given(stored=stored, batch=batch, overlap=0).kind is Kind.NEW
    for wrong in (1, 3, 4):
        found = standing_as_given(stored=stored, batch=batch, overlap=wrong)
        assert found.kind is Kind.NOT_THERE


@given(SIGNS, SIGNS)
def test_what_is_called_stored_is_stored(stored: list[bytes], told: list[bytes]) -> None:
    for follows in (False, True):
        found = batch_position(stored=signs(stored), batch=signs(told), follows=follows)
        if found.kind in (Kind.STORED, Kind.AMBIGUOUS, Kind.OVERLAP):
            assert stored[found.stored : found.stored + found.position] == told[: found.position]
        if found.kind is Kind.OVERLAP:
            assert found.stored + found.position == len(stored)
        if found.kind is Kind.NEW:
            ends = [stored[len(stored) - size :] for size in range(1, len(stored) + 1)]
            assert not any(told[: len(end)] == end for end in ends)


@given(SIGNS, st.lists(st.sampled_from([b"d", b"e"]), min_size=1))
def test_what_follows_the_stored_is_told(stored: list[bytes], new: list[bytes]) -> None:
    found = batch_position(stored=signs(stored), batch=signs([*stored, *new]), follows=False)
    assert found.position == len(stored)
    assert found.kind in (Kind.OVERLAP, Kind.AMBIGUOUS, Kind.NEW)
