"""Markdown becomes WhatsApp's formatting, and nothing that was said is lost."""

import re

import pytest
from hypothesis import given, settings, strategies as st

from memoryproject.foundation.integrations.whatsapp.markdown import to_whatsapp
from memoryproject.foundation.integrations.whatsapp.outgoing_text import split_text, text_length
from tests.fuzz.damage import FACTOR
from tests.tables import table


@table(
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
        ("<https://example.com?a=1&amp;b>", "https://example.com?a=1&b"),
        ("https://example.com/__a__/*b", "https://example.com/__a__/*b"),
        ("- one\n* **two**\n+ three\n1. *four*", "- one\n- *two*\n- three\n1. _four_"),
        ("+ 5 °C\n- 3 °C\n+ ₪4", "+ 5 °C\n- 3 °C\n+ ₪4"),
        ("> **quoted**", "> *quoted*"),
        ("`**code**` and ``a`b``", "`**code**` and ``a`b``"),
        ("```python\n**x** = '# y'\n```\n**after**", "```\n**x** = '# y'\n```\n*after*"),
        ("```Dear Ms Levi,\nyours\n```", "```\nDear Ms Levi,\nyours\n```"),
        ('```py {1} title="x"\ny\n```', "```\ny\n```"),
        ("```\nnever closed **x**", "```\nnever closed **x**\n```"),
        ("2 * 3 * 4, 5*6*7 and a_b_c", "2 * 3 * 4, 5*6*7 and a_b_c"),
        ("5*3 = 15\n2**4 = 16\na*b = c\n2*4 = 8", "5*3 = 15\n2**4 = 16\na*b = c\n2*4 = 8"),
        ("/a/*/b/*.txt, ^.*$ .*?, (*) x (*)", "/a/*/b/*.txt, ^.*$ .*?, (*) x (*)"),
        (r"\*not italic\* and 1\. no list", "*not italic* and 1. no list"),
        ("**never closed", "**never closed"),
        ("***\n---", "———\n———"),
        ("**שלום**: *מה שלומך?*", "*שלום*: _מה שלומך?_"),
        # WhatsApp formats at the edges of words only.
        ("ה**חנות** פתוחה", "החנות פתוחה"),
        ("这是**重要**的。**注意：**请", "这是重要的。注意：请"),
        ("**C**ascading **5**kg", "Cascading 5kg"),
        ("**Note:**text", "Note:text"),
        ("now ₪~~30~~25", "now ₪~30~ 25"),
        ("a **bold\nof two lines** b", "a *bold*\n*of two lines* b"),
        ("**use `x` or https://x.y/z**", "*use* `x` *or* https://x.y/z"),
        ("2.00~ … ~ but ~5 km, ~no~", "2.00 …  but ~5 km, ~no~"),
        ("__init__ and a.__b__() and x**2**y", "__init__ and a.__b__() and x**2**y"),
        # Tables.
        (
            "All:\n| Item | Price |\n|---|--:|\n| Challah | 25 |\n| **Rye** | |\n| | 3 | 4 |\n\nB",
            "All:\n_Item: Price_\n*Challah*: 25\n*Rye*\n3, 4\n\nB",
        ),
        ("| מוצר | מחיר |\n|:-:|-|\n| חלה | 25 ₪ |", "_מוצר: מחיר_\n*חלה*: 25 ₪"),
        (
            "|Day|Open|Close|\n|-|-|-|\n|Mon|9|17|\n|Tue||18<br>19|",
            "_Day_\n*Mon*: Open: 9, Close: 17\n*Tue*: Close: 18 19",
        ),
        ("|only|\n|-|\n|`a\\|b`|", "_only_\n`a|b`"),
        ("|a|\n|-|\n|5|6|\n|7|", "_a_\n*5*: 6\n7"),
        ("|a|b|\n|-|-|\n|`x || y`|`z`|", "_a: b_\n*`x || y`*: `z`"),
        # Lists and quotations.
        ("3. a\n\n   more\n4. b\n   - c\n     - d", "3. a\n\n   more\n4. b\n   - c\n     - d"),
        ("1. a\n1. b\n1. c", "1. a\n2. b\n3. c"),
        ("3) third\n2) second\n1) first", "3) third\n2) second\n1) first"),
        ("- [ ] buy\n- [x] sold\n-\n- [no] task", "☐ buy\n☑ sold\n-\n- [no] task"),
        ("> a\n>\n> - b\n\n> > c", "> a\n>\n> - b\n\n> c"),
        # A whole answer in a fence, and a fence in a fence.
        ("```markdown\n# Hi\n**b**\n```", "*Hi*\n*b*"),
        ("```md\n**a**\n```py\nx\n```\nbye\n```", "*a*\n```\nx\n```\nbye"),
        ("```\n**Open**: 9\n```", "*Open*: 9"),
        ("```\nWe open at nine.\n```", "We open at nine."),
        ("```text\nOn Friday, too?\n\nYes!\n```", "On Friday, too?\n\nYes!"),
        ("```\nאנחנו פותחים בתשע.\n```", "אנחנו פותחים בתשע."),
        ("```\n我们九点开门。\n```", "我们九点开门。"),
        ("```\nEcho $HOME.\n```", "```\nEcho $HOME.\n```"),
        ("```\nnpm install\n```", "```\nnpm install\n```"),
        ("```\nTea    5.\nCoffee 9.\n```", "```\nTea    5.\nCoffee 9.\n```"),
        ("```bash\nls.\n```", "```\nls.\n```"),
        ("```\nTake it.\n```\nBye.", "```\nTake it.\n```\nBye."),
        ("~~~\n```\nx\n```\n~~~", "```\nx\n```"),
        # HTML.
        ("<b>B</b> <I>i</I> a<br>b<br/>\nc <your name> 1 < 2", "*B* _i_ a\nb\nc <your name> 1 < 2"),
        ("&amp; &lt;x&gt; &#1488; &#x5d1; &quot; A&B", '& <x> א ב " A&B'),
        ('<a href="https://x.y">shop</a><!-- no -->', "shop (https://x.y)"),
        ('<a href="https://x.y?a&amp;b">shop</a>', "shop (https://x.y?a&b)"),
        ("if a<b and c>d", "if a<b and c>d"),
        ("10<sup>-6</sup> m<SUP>2</SUP> H<sub>2</sub>O", "10⁻⁶ m² H2O"),
        ("<ul>\n<li>One</li>\n<li>Two</li>\n</ul>", "- One\n- Two"),
        # Formulas and prices.
        ("$$x^2$$ \\(\\frac{a}{b+1}\\) \\[z \\times 2\\] $y$", "x² a/(b+1) z × 2 y"),
        ("$5 and $6, US$5/US$6, $HOME/$A", "$5 and $6, US$5/US$6, $HOME/$A"),
        # References, footnotes and addresses that aren't web pages.
        ("[a][1]\n\n[1]: https://x.y\n[c]: https://z.w", "a (https://x.y)\nc: https://z.w"),
        ("so[^1]\n\n[^1]: Note", "so[1]\n\n[1]: Note"),
        ("[us](mailto:a@b.c) [call](tel:+15550100)", "us (a@b.c) call (+15550100)"),
        (
            "https://x.y/?a=1&amp;b=_c_ [ה](https://x.y/חלה)",
            "https://x.y/?a=1&b=_c_ ה (https://x.y/חלה)",
        ),
        (">" * 500 + " deep\x07", "> deep"),
        ("", ""),
    ],
)
def test_markdown(markdown: str, shown: str) -> None:
    assert to_whatsapp(markdown) == shown


MARKED = st.lists(
    st.sampled_from(
        [*"*_`#[)\\!<>|$", "**", "__", "~~", "```", "](", "|-|", "$$", "<b>", "</b>", "<br>"]
        + [
            "[^1]",
            "- ",
            "1. ",
            "👍",
            "\n",
            "\n\n",
            " ",
            "    ",
            "&amp;",
            "- [ ] ",
            "https://x.y/z",
            "word",
            "שלום",
            "重要",
        ]
    ),
    max_size=40,
).map("".join)


@given(st.one_of(st.text(max_size=60), MARKED))
def test_letters_are_kept_in_order(markdown: str) -> None:
    # The name of a fence's language, a link's title and an address said twice may go.
    if re.search(r"```|~~~|\]\(|\]:|\||[\\`$](?s:.*)[<&]", markdown):
        return
    tags_gone = re.sub(r"&amp;|</?b>|<br>", " ", markdown)
    letters = [character for character in tags_gone if character.isalpha()]

    assert [character for character in to_whatsapp(markdown) if character.isalpha()] == letters


@given(st.text(alphabet="abc *_~#[]()<>שלום", max_size=60))
def test_code_is_untouched(code: str) -> None:
    fenced = f"```\n{code}\n```"

    assert to_whatsapp(f"So:\n{fenced}") == f"So:\n{fenced}"


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
@settings(max_examples=60 * FACTOR)
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


@table(
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


CODE = "  if x:\n"


@table(
    ("text", "parts"),
    [
        ("*" + "bold " * 20 + "end*", ["*" + "bold " * 11 + "bold*", "*" + "bold " * 8 + "end*"]),
        (
            "~_" + "both " * 20 + "end_~",
            ["~_" + "both " * 11 + "both_~", "~_" + "both " * 8 + "end_~"],
        ),
        ("*one* " + "word " * 12 + "2*3", ["*one* " + "word " * 10 + "word", "word 2*3"]),
        (f"a\n```\n{CODE * 12}```\nb", [f"a\n```\n{CODE * 6}```", f"```\n{CODE * 6}```\nb"]),
        (f"{'a' * 55}\n```\n{CODE}```", ["a" * 55, f"```\n{CODE}```"]),
        (f"```\n{CODE * 6}    \n```\n{'b' * 30}", [f"```\n{CODE * 6}```", "b" * 30]),
        (f"```\n{'x' * 100}\n```", [f"```\n{'x' * 56}\n```", f"```\n{'x' * 44}\n```"]),
        # An item of a list and an address stay whole.
        (f"- {'a ' * 20}\n- One. {'b ' * 15}", [f"- {'a ' * 20}".rstrip(), f"- One. {'b ' * 15}"]),
        (f"{'a ' * 20}https://x.y/{'z' * 30}", [("a " * 20).rstrip(), f"https://x.y/{'z' * 30}"]),
        ("一二三四五。" * 12, ["一二三四五。" * 10, "一二三四五。" * 2]),
    ],
)
def test_marks_are_closed_at_a_cut_and_opened_again(text: str, parts: list[str]) -> None:
    assert split_text(text, 64) == parts


@given(MARKED, st.integers(64, 90))
def test_parts_with_marks_fit(markdown: str, limit: int) -> None:
    text = to_whatsapp(markdown * 8)
    parts = split_text(text, limit)

    assert all(text_length(part) <= limit for part in parts)
    letters = [character for character in text if character.isalpha()]
    assert [character for part in parts for character in part if character.isalpha()] == letters


@table("cluster", ["👍🏽", "👩‍👩‍👧", "🇮🇱", "e\u0301", "שָׁ", "❤️", "1\ufe0f\u20e3"])
def test_what_is_read_as_one_character_is_not_torn(cluster: str) -> None:
    limit = text_length(cluster) + 1

    assert split_text(cluster * 5, limit) == [cluster] * 5


def test_length_counts_what_both_providers_might_count() -> None:
    assert text_length("aש") == 2
    assert text_length("👍") == 2


def test_a_limit_that_no_character_fits_into_is_refused() -> None:
    with pytest.raises(ValueError, match="limit"):
        split_text("text", 1)
