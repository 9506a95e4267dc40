"""Markdown becomes WhatsApp's formatting, and nothing that was said is lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryproject.foundation.integrations.whatsapp.outgoing_text import to_whatsapp


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
