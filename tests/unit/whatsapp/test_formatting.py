"""Markdown becomes WhatsApp's formatting, and nothing that was said is lost."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryproject.foundation.integrations.whatsapp.outgoing_text import (
    split_text,
    text_length,
    to_whatsapp,
)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("**bold** and __bold__", "*bold* and *bold*"),
        ("*italic* and _italic_", "_italic_ and _italic_"),
        ("***both***", "*_both_*"),
        ("**bold *inside* it**", "*bold _inside_ it*"),
        ("**it ends *inside***", "*it ends _inside_*"),
        ("~~struck~~", "~struck~"),
        ("# Opening *hours*", "*Opening _hours_*"),
        ("### **Prices** ###", "*Prices*"),
        ("#hashtag", "#hashtag"),
        ("[our shop](https://example.com/a_b_c)", "our shop (https://example.com/a_b_c)"),
        ('[shop](https://example.com "title")', "shop (https://example.com)"),
        ("[x](https://example.com/a_(b))", "x (https://example.com/a_(b))"),
        ("[https://example.com](https://example.com)", "https://example.com"),
        ("[example.com](https://example.com)", "https://example.com"),
        ("![a cat](https://example.com/cat.jpg)", "a cat (https://example.com/cat.jpg)"),
        ("**[shop](https://example.com)**", "*shop (https://example.com)*"),
        ("<https://example.com>", "https://example.com"),
        ("https://example.com/__a__/*b", "https://example.com/__a__/*b"),
        ("- one\n* **two**\n+ three\n1. *four*", "- one\n* *two*\n+ three\n1. _four_"),
        ("> **quoted**", "> *quoted*"),
        ("`**code**` and ``a`b``", "`**code**` and ``a`b``"),
        ("```python\n**x** = '# y'\n```\n**after**", "```\n**x** = '# y'\n```\n*after*"),
        ("```\nnever closed **x**", "```\nnever closed **x**"),
        ("2 * 3 * 4, 5*6*7 and a_b_c", "2 * 3 * 4, 5*6*7 and a_b_c"),
        (r"\*not italic\* and 1\. no list", "*not italic* and 1. no list"),
        ("**never closed", "**never closed"),
        ("***\n---", "***\n---"),
        ("**שלום**: *מה שלומך?*", "*שלום*: _מה שלומך?_"),
        ("ה**חנות** פתוחה", "ה*חנות* פתוחה"),
        ("", ""),
    ],
)
def test_markdown(markdown: str, shown: str) -> None:
    assert to_whatsapp(markdown) == shown


MARKED = st.lists(
    st.sampled_from(
        [
            "**",
            "*",
            "_",
            "__",
            "~~",
            "`",
            "```",
            "\n",
            " ",
            "#",
            "[",
            "](",
            ")",
            "\\",
            "!",
            "<",
            ">",
        ]
        + ["word", "שלום", "1", "https://x.y/z", "- ", "👍"]
    ),
    max_size=40,
).map("".join)


@given(st.one_of(st.text(max_size=60), MARKED))
def test_letters_and_numbers_are_kept_in_order(markdown: str) -> None:
    # The name of a fence's language, a link's title and an address said twice may go.
    if re.search(r"```|~~~|\]\(", markdown):
        return
    letters = [character for character in markdown if character.isalnum()]

    assert [character for character in to_whatsapp(markdown) if character.isalnum()] == letters


@given(MARKED)
def test_lines_stay_lines(markdown: str) -> None:
    assert to_whatsapp(markdown).count("\n") == markdown.count("\n")


@given(st.text(alphabet="abc *_~#[]()<>שלום", max_size=60).filter(lambda code: "`" not in code))
def test_code_is_untouched(code: str) -> None:
    fenced = f"```\n{code}\n```"

    assert to_whatsapp(fenced) == fenced


# Long texts are cut where a reader would pause, within the limit, without loss.


PIECES = st.lists(
    st.sampled_from(
        ["a", "word", "שלום", "שָׁלוֹם", " ", "  ", "\n", "\n\n", "\t", "\u00a0", ". ", "? ", "! "]
        + ['."', "3.5", "👍🏽", "👩‍👩‍👧", "🇮🇱", "e\u0301", "- item\n"]
    ),
    max_size=60,
).map("".join)


def without_space(text: str) -> str:
    return re.sub(r"\s", "", text)


@given(text=st.one_of(PIECES, st.text(max_size=200)), limit=st.integers(2, 50))
@settings(max_examples=400)
def test_parts_fit_and_hold_everything_in_order(text: str, limit: int) -> None:
    parts = split_text(text, limit)

    assert all(0 < text_length(part) <= limit for part in parts)
    assert all(part.strip() for part in parts)
    assert without_space("".join(parts)) == without_space(text)
    # Only white space at the cuts is gone: every part stands in the text as it is.
    place = 0
    for part in parts:
        start = text.index(part, place)
        assert not text[place:start].strip()
        place = start + len(part)


@given(text=PIECES)
def test_a_text_that_fits_stays_whole(text: str) -> None:
    assert split_text(text, 10_000) == ([text] if text.strip() else [])


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("One. Two.\n\nThree. Four.", 16, ["One. Two.", "Three. Four."]),
        ("One is here. Two is there.", 20, ["One is here.", "Two is there."]),
        ('He said "no." Then he left.', 20, ['He said "no."', "Then he left."]),
        ("It costs 3.50 today only", 14, ["It costs 3.50", "today only"]),
        ("- first thing\n- second thing", 20, ["- first thing", "- second thing"]),
        ("words without any end", 15, ["words without", "any end"]),
        ("exactly ten", 7, ["exactly", "ten"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("שלום לכם. מה שלומכם?", 12, ["שלום לכם.", "מה שלומכם?"]),
        ("   \n  ", 3, []),
    ],
)
def test_where_it_is_cut(text: str, limit: int, parts: list[str]) -> None:
    assert split_text(text, limit) == parts


@pytest.mark.parametrize("cluster", ["👍🏽", "👩‍👩‍👧", "🇮🇱", "e\u0301", "שָׁ", "❤️", "1\ufe0f\u20e3"])
def test_what_is_read_as_one_character_is_not_torn(cluster: str) -> None:
    limit = text_length(cluster) + 1

    assert split_text(cluster * 5, limit) == [cluster] * 5


def test_length_counts_what_both_providers_might_count() -> None:
    assert text_length("aש") == 2
    assert text_length("👍") == 2


def test_a_limit_that_no_character_fits_into_is_refused() -> None:
    with pytest.raises(ValueError, match="limit"):
        split_text("text", 1)
