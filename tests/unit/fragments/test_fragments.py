"""What counts as a part of a text that is to be forgotten."""

from __future__ import annotations

from hypothesis import given, strategies as st

from memoryproject.foundation.retrieval.fragments import MARK, Fragments, kept_sentences
from tests.tables import table

FACT = "TestCorp owes me 5000 shekels from invoice INV-001"


@table(
    "text",
    [
        FACT,
        FACT.upper(),
        "Remembered: TestCorp  owes\nme 5000 shekels from invoice INV-001.",
        f"Good morning. {FACT}; anything else?",
    ],
)
def test_copies_are_found(text: str) -> None:
    assert Fragments([FACT]).are_in(text)


@table(
    "text",
    [
        "TestCorp owes nobody",
        "from invoice INV-002",
        "",
        "5000 shekels from the bank",
        "TestCorp owes me 5000 of something",
    ],
)
def test_what_only_shares_words_is_not(text: str) -> None:
    assert not Fragments([FACT]).are_in(text)


def test_the_same_in_other_words_is_cut_out_of_an_answer() -> None:
    answer = "Hello. From invoice INV-001, TestCorp owes 5000. See you!"
    kept, gone = Fragments([FACT]).cut(answer)
    assert kept == f"Hello. {MARK} See you!"
    assert gone == ["From invoice INV-001, TestCorp owes 5000."]


def test_lines_of_a_list_go_one_by_one() -> None:
    kept, _ = Fragments([FACT]).cut(f"You told me:\n1. {FACT}\n2. Dana likes tea in the garden")
    assert kept == f"You told me:\n1. {MARK}\n2. Dana likes tea in the garden"


def test_one_sentence_of_a_long_text_in_other_words_is_cut_out() -> None:
    passage = f"The warehouse in Ashdod stacks pallets. {FACT}."
    kept, _ = Fragments([passage]).cut("Sure. In Ashdod pallets fill the warehouse. Bye!")
    assert kept == f"Sure. {MARK} Bye!"


def test_the_marks_of_a_line_go_along_with_it() -> None:
    listed = f"1. {FACT}.\n    9be68524 · Dana Ofer\n2. Tea\n    54ec734d · Dana Ofer"
    kept, _ = Fragments([FACT]).cut(listed)
    assert kept == f"1. {MARK}\n2. Tea\n    54ec734d · Dana Ofer"


@table("text", ["ok", "How are you?", "מה שלומך", "Haifa"])
def test_grammar_words_and_single_words_are_no_quotation(text: str) -> None:
    assert not Fragments([text]).are_in(f"Well. {text} And now?")


def test_scripts_without_spaces_are_compared_by_characters() -> None:
    fragments = Fragments(["東京の倉庫の鍵"])
    assert fragments.are_in("これは東京の倉庫の鍵です")
    assert fragments.cut("鍵は東京の倉庫にある。大阪の店。") == (
        f"{MARK}大阪の店。",
        ["鍵は東京の倉庫にある。"],
    )
    assert not fragments.are_in("大阪の店")


LONG = "The keys of the old shop lie below the third stone beside the gate of the yard, she said"


def test_eight_words_of_a_longer_sentence_are_a_quotation() -> None:
    words = LONG.split()
    assert Fragments([LONG]).are_in(f"I think {' '.join(words[6:14])}, right?")
    assert not Fragments([LONG]).are_in(f"I think {' '.join(words[6:13])}, right?")


def test_words_that_a_kept_sentence_explains_tell_nothing() -> None:
    asked = "What's the status with the Alpha order?"
    fragments = Fragments(["The status of the Beta order is paid"])
    answer = "You asked for the status of an order that is paid."
    assert fragments.cut(answer)[0] == MARK
    kept = kept_sentences([asked, "Is an order paid?"])
    assert fragments.cut(answer, lambda: kept) == (answer, [])
    assert fragments.cut("The status of the Beta order is paid.", lambda: kept)[0] == MARK


def test_a_number_alone_tells() -> None:
    fragments = Fragments(["The vault of the shop opens with 7741 to the left"])
    assert fragments.cut("Sure. It's 7741. Bye!") == (f"Sure. {MARK} Bye!", ["It's 7741."])
    kept = kept_sentences(["Is room 7741 free?"])
    assert fragments.cut("Sure. It's 7741. Bye!", lambda: kept)[1] == []


def test_json_is_cleaned_at_every_depth_and_keeps_its_form() -> None:
    value = {"a": [{"content": f"- {FACT}"}, 3, None], FACT: True, "b": "other"}
    assert Fragments([FACT]).cleaned(value) == {
        "a": [{"content": MARK}, 3, None],
        MARK: True,
        "b": "other",
    }


@given(st.text(max_size=200), st.text(max_size=200))
def test_nothing_is_left_of_it_in_any_text(secret: str, around: str) -> None:
    fragments = Fragments([secret])
    kept, gone = fragments.cut(around + "\n" + secret)
    assert not fragments.are_in(kept) or not gone
    assert not fragments.are_in(fragments.quotes_cut(around + "\n" + secret))


@given(st.text(max_size=300))
def test_without_anything_to_look_for_nothing_changes(text: str) -> None:
    assert Fragments().cut(text) == (text, [])
    assert Fragments().cleaned([text]) == [text]
