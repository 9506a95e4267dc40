"""What holds for the card of any conversation."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import astuple

import pytest
from hypothesis import given, settings

from cards_app.rules.card import CardFields, extract_card
from cards_app.rules.hebrew_names import is_hebrew
from cards_app.rules.redact import redact
from cards_app.rules.session_data import Line, one_line
from memoryproject.foundation.text.characters import is_mark
from tests.unit.cards.test_example import EXAMPLE
from tests.unit.cards.texts import ANY_LINES


def items(card: CardFields) -> list[str]:
    return [*card.summary_bullets, *card.decisions, *card.todos, *card.notable_quotes]


@given(ANY_LINES)
@settings(max_examples=300, deadline=None)
def test_the_limits_hold(lines: list[Line]) -> None:
    card = extract_card(lines)
    assert 0 < len(card.title) <= 80
    assert all(0 < len(item) <= 100 for item in items(card))
    assert len(card.summary_bullets) == min(3, sum(bool(line.content.strip()) for line in lines))
    assert max(len(card.decisions), len(card.todos), len(card.notable_quotes)) <= 3
    assert max(len(card.entities), len(card.keywords)) <= 10
    assert all(len(word) <= 50 for word in card.entities + card.keywords)


@given(ANY_LINES)
@settings(max_examples=300, deadline=None)
def test_no_personal_data_is_in_any_field(lines: list[Line]) -> None:
    card = extract_card(lines)
    for text in [card.title, *items(card), *card.entities, *card.keywords]:
        assert redact(text) == text


@given(ANY_LINES)
@settings(deadline=None)
def test_every_item_is_one_line(lines: list[Line]) -> None:
    for text in [extract_card(lines).title, *items(extract_card(lines))]:
        assert text == one_line(text)


@given(ANY_LINES)
@settings(deadline=None)
def test_words_are_whole(lines: list[Line]) -> None:
    card = extract_card(lines)
    for word in card.entities + card.keywords:
        assert word[0].isalpha()
        # "תל אביב" is one name.
        whole = word.replace(" ", "") if is_hebrew(word) else word
        assert all(
            each.isalnum() or is_mark(each) or each in "_'’ʼ׳\"״”\u200c\u200d" for each in whole
        )
    assert len(set(card.keywords)) == len(card.keywords)
    assert len(set(card.entities)) == len(card.entities)


@given(ANY_LINES)
@settings(deadline=None)
def test_the_same_lines_give_the_same_card(lines: list[Line]) -> None:
    assert extract_card(lines) == extract_card(list(lines))


@pytest.mark.processes
def test_the_card_is_the_same_in_another_process_with_other_hashes() -> None:
    """Nothing hangs on the order of a set."""
    program = (
        "from cards_app.rules.card import extract_card;"
        "from tests.unit.cards.test_example import EXAMPLE;"
        "from dataclasses import astuple;"
        "print(ascii(astuple(extract_card(EXAMPLE))))"
    )
    for seed in ("1", "2"):
        other = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        )
        assert other.stdout.strip() == ascii(astuple(extract_card(EXAMPLE)))
