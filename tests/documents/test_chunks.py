"""Cutting long texts: nothing is lost, nothing is too long, sentences stay whole."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryproject.foundation.text.chunks import MAX_COUNT, TARGET, cut_text

PIECES = st.sampled_from(
    [
        "TestCorp pays.",
        " ",
        "\n",
        "\n\n",
        "# Terms\n",
        "שלום, מה שלומך?",
        "。",
        "ש\u05b8\u05dc",
        "x" * 40,
    ]
)


def bare(text: str) -> str:
    return "".join(text.split())


@given(
    st.one_of(st.text(max_size=400), st.lists(PIECES, max_size=80).map("".join)),
    st.integers(min_value=10, max_value=60),
    st.integers(min_value=60, max_value=90),
)
def test_every_character_is_in_exactly_one_passage(text: str, target: int, most: int) -> None:
    passages = cut_text(text, target=target, most=most)
    end = 0
    for passage in passages:
        assert passage.start >= end
        assert text[passage.start : passage.end] == passage.text == passage.text.strip()
        assert 0 < len(passage.text) <= most
        assert not text[end : passage.start].strip()
        end = passage.end
    assert not text[end:].strip()
    assert "".join(bare(passage.text) for passage in passages) == bare(text)


SENTENCES = [f"Sentence number {number} is about clause {number} of it." for number in range(200)]


def test_passages_are_of_whole_sentences_and_near_the_target() -> None:
    passages = cut_text(" ".join(SENTENCES))
    for passage in passages:
        assert passage.text.startswith("Sentence")
        assert passage.text.endswith(".")
    assert all(TARGET // 2 <= len(passage.text) <= MAX_COUNT for passage in passages[:-1])


def test_sentences_that_are_wrapped_over_lines_stay_whole() -> None:
    """Text of a PDF has a line's end wherever the page had one."""
    text = textwrap.fill(" ".join(SENTENCES), width=80)
    passages = cut_text(text)
    assert len(passages) > 5
    assert all(passage.text.split()[0] == "Sentence" for passage in passages)
    assert all(passage.text.endswith(".") for passage in passages)


def test_the_lines_of_a_list_stay_whole() -> None:
    lines = [
        f"- item {number} of a rather long list of all that is sold here" for number in range(90)
    ]
    passages = cut_text("\n".join(lines))
    assert len(passages) > 3
    assert [line for passage in passages for line in passage.text.split("\n")] == lines


def test_a_word_that_is_too_long_is_cut_anywhere() -> None:
    assert [len(passage.text) for passage in cut_text("x" * 3000)] == [1200, 1200, 600]


@pytest.mark.parametrize("heading", ["## Delivery", "Delivery", "משלוחים"])
def test_a_heading_stays_with_what_follows(heading: str) -> None:
    before = " ".join(SENTENCES[:15])
    after = " ".join(SENTENCES[20:35])
    passages = cut_text(f"{before}\n\n{heading}\n\n{after}")
    (found,) = [passage for passage in passages if heading in passage.text]
    assert found.text.startswith(heading)
    assert len(found.text) > len(heading) + 100
