"""Messages shortened so that all of them fit together."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from cards_app.rules.session_data import Line, one_line
from cards_app.rules.speakers import shortened_lines
from tests.unit.cards.test_summary import CHAIRS, PARTY
from tests.unit.cards.texts import ANY_LINES, said


def test_with_room_for_all_each_message_is_there_whole() -> None:
    assert shortened_lines(PARTY[:2], longest=500) == (
        "client: Hi there! I'd like to book the garden for a party of 40 on June 12.\n"
        "assistant: Sure! The garden costs 3,500 ₪ for the evening. Do you need catering?"
    )


def test_short_lines_give_their_room_to_long_ones() -> None:
    lines = [*said("Yes."), Line("assistant", "word " * 100), *said("No.")]
    shown = shortened_lines(lines, longest=120).split("\n")
    assert shown[0] == "client: Yes."
    assert shown[2] == "client: No."
    assert 85 <= len(shown[1]) <= 94
    assert shown[1].endswith("word…")


def test_where_not_all_fit_the_newest_stay() -> None:
    assert shortened_lines(PARTY, longest=100) == (
        "(4 earlier left out)\n"
        "client: ok thanks!\n"
        "client: I need to pay a deposit to…\n"
        "assistant: Great, noted."
    )


def test_with_the_least_room_the_last_one_stays() -> None:
    lines = said(*["word " * 20] * 5)
    assert shortened_lines(lines, longest=40) == "(4 earlier left out)\nword word word…"


def test_a_hebrew_conversation() -> None:
    assert shortened_lines(CHAIRS, longest=80) == (
        "(2 קודמות הושמטו)\nלקוח: ב-18:30. החלטנו לקחת גם 3 שולחנות. צריך…\nהעוזר: רשמתי."
    )


def test_messages_without_text_have_no_line() -> None:
    assert shortened_lines(said("One\n\ntwo", " ", ""), longest=80) == "client: One two"
    assert shortened_lines([], longest=80) == ""


@given(ANY_LINES, st.integers(min_value=40, max_value=1500))
@settings(max_examples=300, deadline=None)
def test_it_fits_and_is_verbatim(lines: list[Line], longest: int) -> None:
    passage = shortened_lines(lines, longest=longest)
    assert len(passage) <= longest
    assert passage == shortened_lines(list(lines), longest=longest)
    texts = [one_line(line.content) for line in lines if line.content.strip()]
    rows = passage.split("\n") if passage else []
    left_out = re.match(r"\((\d+) (?:earlier left out|קודמות הושמטו)\)$", rows[0]) if rows else None
    if left_out:
        rows = rows[1:]
    assert len(rows) + (int(left_out.group(1)) if left_out else 0) == len(texts)
    for row, text in zip(rows, texts[len(texts) - len(rows) :], strict=True):
        spoken = row.removesuffix("…")
        assert any(text.startswith(spoken[place:].lstrip()) for place in range(len(spoken) + 1))


@given(ANY_LINES, st.integers(min_value=40, max_value=400))
@settings(deadline=None)
def test_nothing_is_cut_or_left_out_without_need(lines: list[Line], longest: int) -> None:
    whole = shortened_lines(lines, longest=1_000_000)
    if len(whole) <= longest:
        assert shortened_lines(lines, longest=longest) == whole


def test_a_role_that_is_no_name_is_left_out() -> None:
    assert shortened_lines([Line("x" * 50, "Hello")], longest=80) == "Hello"
