"""Where sentences end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from cards_app.rules.words import is_question, split_sentences
from tests.unit.cards.texts import ANY_TEXT


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "text", ["Why?", "Why?!", 'He said "why?"', "(why?)", "Why?🙂", "למה?", "为什么？"]
)
def test_questions(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize("text", ["Why? Because.", "a?b", "No.", "", "!"])
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
