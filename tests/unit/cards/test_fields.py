"""Each field of a card by seed 001's table."""

from __future__ import annotations

import pytest

from cards_app.rules.card import extract_card
from cards_app.rules.phrases import DECISIONS, TODOS
from cards_app.rules.session_data import Line
from tests.unit.cards.texts import said


def test_the_title_is_what_a_user_said_first() -> None:
    lines = [Line("assistant", "Hello, how can I help?"), *said("When do you open?", "And close?")]
    assert extract_card(lines).title == "When do you open?"


def test_a_picture_without_text_is_no_title() -> None:
    assert extract_card(said(" \n ", "What is this?")).title == "What is this?"


def test_without_a_user_the_session_is_untitled() -> None:
    assert extract_card([Line("assistant", "Hello")]).title == "Untitled Session"


def test_a_title_of_80_characters_stays_whole() -> None:
    assert extract_card(said("abcd " * 15 + "abcde")).title == "abcd " * 15 + "abcde"


def test_a_word_that_ends_where_the_dots_begin_stays() -> None:
    assert extract_card(said("abcdef " * 11 + "abcdef")).title == ("abcdef " * 11)[:-1] + "..."


def test_a_single_long_word_is_cut_inside_but_no_character_is_torn() -> None:
    assert extract_card(said("x" * 81)).title == "x" * 77 + "..."
    family = "👩‍👩‍👧"
    assert extract_card(said(family * 20)).title == family * 15 + "..."
    accented = "e\u0301"
    assert extract_card(said(accented * 60)).title == accented * 38 + "..."


def test_line_breaks_become_spaces() -> None:
    assert extract_card(said("One\n\ntwo\tthree")).title == "One two three"


def test_a_bullet_has_its_role_within_its_length() -> None:
    bullets = extract_card([Line("assistant", "word " * 30)] * 4).summary_bullets
    assert len(bullets) == 3
    assert bullets[0] == "[assistant] " + "word " * 16 + "word..."


def test_a_bullet_of_one_long_word_says_its_beginning() -> None:
    (bullet,) = extract_card(said("x" * 200)).summary_bullets
    assert bullet == "[user] " + "x" * 90 + "..."


@pytest.mark.parametrize("phrase", DECISIONS)
def test_each_word_of_decision_is_found_whatever_its_case(phrase: str) -> None:
    for text in (f"so {phrase} it", f"So {phrase.upper()}!", f"*{phrase}*", f"_{phrase}_"):
        assert extract_card(said(text)).decisions == (text,)


@pytest.mark.parametrize("phrase", TODOS)
def test_each_word_of_a_task_is_found_whatever_its_case(phrase: str) -> None:
    for text in (f"We {phrase} go", f"{phrase.upper()}: call", f"({phrase} go)"):
        assert extract_card(said(text)).todos == (text,)


def test_a_curly_apostrophe_is_an_apostrophe() -> None:
    assert extract_card(said("Don’t forget the keys")).todos == ("Don’t forget the keys",)


@pytest.mark.parametrize(
    "text", ["undecided", "decisions", "shoulder", "mustard", "todos", "my_todo_list", "go with it"]
)
def test_a_part_of_a_word_is_no_match(text: str) -> None:
    card = extract_card(said(f"The {text} is here"))
    assert card.decisions == card.todos == ()


def test_an_item_runs_from_its_sentence_to_the_end_of_the_message() -> None:
    card = extract_card(said("It rained. We decided to stay. Then it stopped.", "Nothing here."))
    assert card.decisions == ("We decided to stay. Then it stopped.",)


def test_a_question_is_no_task() -> None:
    assert extract_card(said("Should we go?")).todos == ()
    assert extract_card(said('He asked "should we go?"')).todos == ()


def test_after_a_question_a_task_may_come() -> None:
    card = extract_card(said("Should we go? It is late. We must leave now."))
    assert card.todos == ("We must leave now.",)


def test_at_most_three_of_each_and_the_first_ones() -> None:
    lines = said(*[f"We decided {n}. We must {n}! Why {n}?" for n in range(5)])
    card = extract_card(lines)
    assert card.decisions == tuple(f"We decided {n}. We must {n}! Why {n}?" for n in range(3))
    assert card.todos == tuple(f"We must {n}! Why {n}?" for n in range(3))
    assert card.notable_quotes == card.todos


def test_a_question_mark_in_an_address_asks_nothing() -> None:
    assert extract_card(said("See https://shop.example/?a=b!c for it")).notable_quotes == ()


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("החלטנו לקנות שולחן", "decisions"),
        ("אז הֶחְלַטְנוּ לקנות", "decisions"),
        ("אמרתי שהחלטתי כבר", "decisions"),
        ("נלך על הצעה ב", "decisions"),
        ("צריך לשלם מחר", "todos"),
        ("ואל תשכחי את המפתח", "todos"),
        ("חייבים לסגור היום", "todos"),
    ],
)
def test_hebrew_decisions_and_tasks(text: str, field: str) -> None:
    assert getattr(extract_card(said(text)), field) == (text,)


@pytest.mark.parametrize("text", ["הוא חייב לי כסף", "חייבים להם הרבה", "האם צריך לשלם?"])
def test_debts_and_questions_are_no_hebrew_tasks(text: str) -> None:
    assert extract_card(said(text)).todos == ()
