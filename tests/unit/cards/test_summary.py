"""The summary that needs no chat model: short enough, and in the conversation's own words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cards_app.rules.extract import extractive_summary
from cards_app.rules.session_data import Line, one_line
from cards_app.rules.speakers import ENGLISH, HEBREW, SectionWords
from cards_app.rules.words import without_points
from tests.unit.cards.texts import ANY_LINES, said

PARTY = [
    Line("user", "Hi there! I'd like to book the garden for a party of 40 on June 12."),
    Line("assistant", "Sure! The garden costs 3,500 ₪ for the evening. Do you need catering?"),
    Line("user", "We're going with the vegetarian menu. What about parking?"),
    Line("assistant", "There are 15 places behind the house."),
    Line("user", "ok thanks!"),
    Line("user", "I need to pay a deposit to Dana Levi by Sunday. Dana has the contract."),
    Line("assistant", "Great, noted."),
]
CHAIRS = [
    Line("user", "שלום! אני רוצה להזמין 12 כיסאות לאירוע בגבעתיים ביום חמישי."),
    Line("assistant", 'בשמחה. המחיר הוא 45 ש"ח לכיסא. לאיזו שעה?'),
    Line("user", "ב-18:30. החלטנו לקחת גם 3 שולחנות. צריך לוודא שיש חניה."),
    Line("assistant", "רשמתי."),
]


def test_a_conversation_with_room_for_all_of_it() -> None:
    assert extractive_summary(PARTY, longest=1000) == (
        "About: client: I'd like to book the garden for a party of 40 on June 12.\n"
        "Decided:\n"
        "- client: We're going with the vegetarian menu.\n"
        "To do:\n"
        "- client: I need to pay a deposit to Dana Levi by Sunday.\n"
        "Asked:\n"
        "- assistant: Do you need catering?\n"
        "- client: What about parking?\n"
        "Said:\n"
        "- assistant: The garden costs 3,500 ₪ for the evening.\n"
        "- assistant: There are 15 places behind the house.\n"
        "- client: Dana has the contract."
    )


def test_where_room_is_short_figures_and_the_newest_stay() -> None:
    assert extractive_summary(PARTY, longest=270) == (
        "About: client: I'd like to book the garden for a party of 40 on June 12.\n"
        "Decided:\n"
        "- client: We're going with the vegetarian menu.\n"
        "To do:\n"
        "- client: I need to pay a deposit to Dana Levi by Sunday.\n"
        "Said:\n"
        "- assistant: The garden costs 3,500 ₪ for the evening."
    )


def test_a_hebrew_conversation_has_a_hebrew_summary() -> None:
    assert extractive_summary(CHAIRS, longest=400) == (
        "נושא: לקוח: אני רוצה להזמין 12 כיסאות לאירוע בגבעתיים ביום חמישי.\n"
        "הוחלט:\n"
        "- לקוח: החלטנו לקחת גם 3 שולחנות.\n"
        "לטיפול:\n"
        "- לקוח: צריך לוודא שיש חניה.\n"
        "נשאל:\n"
        "- העוזר: לאיזו שעה?\n"
        "נאמר:\n"
        '- העוזר: המחיר הוא 45 ש"ח לכיסא.\n'
        "- לקוח: ב-18:30."
    )


@pytest.mark.parametrize("lines", [[], said("", " \n\u00a0")])
def test_nothing_said_is_no_summary(lines: list[Line]) -> None:
    assert extractive_summary(lines, longest=100) == ""


@pytest.mark.parametrize("text", ["ok", "👍", "תודה!", "x" * 500, "?"])
def test_a_conversation_that_says_nothing_has_one_line(text: str) -> None:
    assert extractive_summary(said(text), longest=100).count("\n") == 0
    assert text[:20] in extractive_summary(said(text), longest=100)


def test_one_very_long_line_is_looked_through_to_its_end() -> None:
    text = (
        "we talked about many things, " * 200
        + "the code is 4711 and Dana has it, "
        + "and so on " * 200
    )
    summary = extractive_summary(said(text), longest=400)
    assert summary.startswith("About: client: we talked about many things,")
    assert "the code is 4711 and Dana has it" in summary


def test_the_last_messages_count_like_the_first() -> None:
    lines = said("Hello, I have a question about chairs.", *["Nothing much new today."] * 50)
    lines.append(Line("user", "The new chairs cost 450 ₪."))
    assert "450 ₪" in extractive_summary(lines, longest=120)


def test_of_like_sentences_the_newest_stay() -> None:
    lines = said(
        "Which rooms have a balcony?", *[f"Room {n} costs {n} ₪." for n in range(100, 200)]
    )
    summary = extractive_summary(lines, longest=200)
    assert "Room 199 costs 199 ₪." in summary
    assert "Room 100 costs" not in summary


def test_tasks_do_not_crowd_out_facts() -> None:
    tasks = [f"We should call {letter}{letter} in room 1{letter} today." for letter in "abcdefghij"]
    lines = said("Our plans for the week.", "The code of the door is 4711.", *tasks)
    assert "4711" in extractive_summary(lines, longest=400)


def test_what_was_said_twice_stands_there_once() -> None:
    lines = said("We want a table.", "It costs 50 ₪.", "it costs 50 ₪!", "It costs 50 ₪.")
    assert extractive_summary(lines, longest=400).lower().count("it costs 50") == 1


def test_numbers_and_names_are_not_redacted() -> None:
    lines = said("Please write this down.", "Dana's number is 050-1234567, dana@shop.example")
    assert "050-1234567, dana@shop.example" in extractive_summary(lines, longest=200)


def test_small_talk_stays_out() -> None:
    lines = said("Hi!", "How are you?", "What does a chair cost?", "Thanks!", "Bye")
    assert extractive_summary(lines, longest=400) == "About: client: What does a chair cost?"


def test_roles_speak_by_their_names() -> None:
    lines = [Line("godfather", "TestCorp owes me 5,000 ₪."), Line("tool", "balance 4,000 ₪ left")]
    summary = extractive_summary(lines, longest=200)
    assert "About: godfather: TestCorp" in summary
    assert "- tool: balance" in summary


def test_less_room_than_40_is_refused() -> None:
    with pytest.raises(ValueError, match="40"):
        extractive_summary(PARTY, longest=39)


@given(ANY_LINES, st.integers(min_value=40, max_value=1500))
@settings(max_examples=300, deadline=None)
def test_it_fits_and_is_verbatim(lines: list[Line], longest: int) -> None:
    summary = extractive_summary(lines, longest=longest)
    assert len(summary) <= longest
    assert summary == extractive_summary(list(lines), longest=longest)
    words = HEBREW if summary.startswith(HEBREW.about) else ENGLISH
    texts = [one_line(line.content) for line in lines]
    # Hebrew names stand without niqqud.
    texts += [without_points(text) for text in texts]
    for row in summary.split("\n") if summary else []:
        for fragment in _fragments(row, words):
            assert any(fragment in text for text in texts), row


def _fragments(row: str, words: SectionWords) -> list[str]:
    """What of a row of the summary was said by somebody."""
    headings = (words.decisions, words.todos, words.questions, words.details)
    if row in {f"{heading}:" for heading in headings}:
        return []
    if row.startswith(f"{words.names}: "):
        return row.removeprefix(f"{words.names}: ").split(", ")
    said_by = row.removeprefix(f"{words.about}: ").removeprefix("- ")
    for role in ("user", "assistant", "godfather", "system", "tool"):
        if said_by.startswith(words.speaker(role)):
            return [said_by.removeprefix(words.speaker(role)).strip("…").strip()]
    return [said_by.strip("…").strip()]
