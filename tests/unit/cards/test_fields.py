"""Each field of a card by seed 001's table."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from cards_app.rules.card import extract_card
from cards_app.rules.phrases import DECISIONS, TODOS
from cards_app.rules.session_data import Line
from cards_app.rules.words import is_question, split_sentences
from tests.tables import table
from tests.unit.cards.texts import ANY_TEXT, said


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


@table("phrase", DECISIONS)
def test_each_word_of_decision_is_found_whatever_its_case(phrase: str) -> None:
    for text in (f"so {phrase} it", f"So {phrase.upper()}!", f"*{phrase}*", f"_{phrase}_"):
        assert extract_card(said(text)).decisions == (text,)


@table("phrase", TODOS)
def test_each_word_of_a_task_is_found_whatever_its_case(phrase: str) -> None:
    for text in (f"We {phrase} go", f"{phrase.upper()}: call", f"({phrase} go)"):
        assert extract_card(said(text)).todos == (text,)


def test_a_curly_apostrophe_is_an_apostrophe() -> None:
    assert extract_card(said("Don’t forget the keys")).todos == ("Don’t forget the keys",)


@table(
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


@table(
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


# Where sentences end.


@table(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("ok. we go. fine", ["ok.", "we go.", "fine"]),
        ("See e.g. this. Dr. Cohen agrees.", ["See e.g. this.", "Dr. Cohen agrees."]),
        ("It is No. 5 of 3.5 kg. No. Really.", ["It is No. 5 of 3.5 kg.", "No.", "Really."]),
        ("At 5 p.m. on May 1. At 6 p.m. We go.", ["At 5 p.m. on May 1.", "At 6 p.m.", "We go."]),
        ("Acme Inc. is it. Ask Acme Inc. Bye.", ["Acme Inc. is it.", "Ask Acme Inc.", "Bye."]),
        ("J. Smith came. So did I. We left.", ["J. Smith came.", "So did I.", "We left."]),
        ("1. Deploy it now\n2. Check it", ["1. Deploy it now", "2. Check it"]),
        ("Well... we decided. Then... We left", ["Well... we decided.", "Then...", "We left"]),
        ("Well… we decided", ["Well… we decided"]),
        ("See www.shop.example/a.b?c=d. It is", ["See www.shop.example/a.b?c=d.", "It is"]),
        ('He asked "why?" and left. "No." Bye', ['He asked "why?" and left.', '"No."', "Bye"]),
        ("Great!👍 We go. (Really.) Yes", ["Great!👍", "We go.", "(Really.)", "Yes"]),
        ("Is it (e.g., now)? Yes", ["Is it (e.g., now)?", "Yes"]),
        ("line one\nline two\r\n\r\nthree", ["line one", "line two", "three"]),
        ("שלום. מה שלומך? טוב... תודה", ["שלום.", "מה שלומך?", "טוב...", "תודה"]),
        ('עולה 3.5 ש"ח. מספר ת.ז. שלי', ['עולה 3.5 ש"ח.', "מספר ת.ז. שלי"]),
        ("你好。我们决定了！好", ["你好。", "我们决定了！", "好"]),
        ("What?! No!!! Hm", ["What?!", "No!!!", "Hm"]),
        ("", []),
        (" \n ", []),
    ],
)  # fmt: skip
def test_where_they_end(text: str, sentences: list[str]) -> None:
    assert [sentence.text for sentence in split_sentences(text)] == sentences


@table("text", ["Why?", "Why?!", 'He said "why?"', "(why?)", "Why?🙂", "למה?", "为什么？"])
def test_questions(text: str) -> None:
    assert is_question(text)


@table("text", ["Why? Because.", "a?b", "No.", "", "!"])
def test_what_asks_nothing(text: str) -> None:
    assert not is_question(text)


@given(ANY_TEXT)
@settings(deadline=None)
def test_sentences_hold_all_of_the_text_where_it_stands(text: str) -> None:
    place = 0
    for sentence in split_sentences(text):
        assert not text[place : sentence.start].strip()
        assert text.startswith(sentence.text, sentence.start)
        assert sentence.text == sentence.text.strip() != ""
        place = sentence.start + len(sentence.text)
    assert not text[place:].strip()
