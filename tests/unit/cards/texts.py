"""Texts for the tests of the rules: whole messages, and any mixture of what may trip them."""

from __future__ import annotations

from hypothesis import strategies as st

from cards_app.rules.session_data import Line

PIECES = [
    *["we decided to go", "need to", "Should we", "TODO", "don't forget", "The", "Docker", "I've"],
    *["בתל אביב", "ולדנה", 'בצה"ל', "ד״ר", "רבינוביץ", "קוראים לי", "״אלומה״", "חברת"],
    *["החלטנו", "צריך לשלם", 'ש"ח', "שָׁלוֹם", "don’t", "e.g.", "Dr.", "...", "…", "3.5", "1.", "- "],
    *[" ", " ", " ", "\n", "\t", "\u00a0", "\u200f", "\x00", "\x1c", ". ", "? ", "! ", ", ", "_"],
    *["(", ")", '"', "+", "-", "/", "@", "[phone]", "[email]", "https://shop.example/a?b=c!"],
    *["dana@shop.example", "15550100123@c.us", "050-1234567", "+1 555 010 0123", "2025-01-15"],
    *["4111 1111 1111 1111", "IL620108000000099999999", "123", "4567", "89012", "x" * 60],
    *[
        "👩‍👩‍👧",
        "👍🏽",
        "🇮🇱",
        "e\u0301",
        "\u0301",
        "你好。",
        "ß",
        "İ",
        "ǅungla",
        "\ud800",
        "٠٥٠١٢٣٤٥٦",
    ],
]
ANY_TEXT = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join), st.text(max_size=300)
)
ROLES = st.sampled_from(["user", "assistant", "system", "tool", "summary", "godfather", "x" * 32])
ANY_LINES = st.lists(st.builds(Line, ROLES, ANY_TEXT), max_size=8)


def said(*contents: str) -> list[Line]:
    """What a user said, message by message."""
    return [Line("user", content) for content in contents]
