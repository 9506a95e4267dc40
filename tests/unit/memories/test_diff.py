"""What changed from one text to another."""

from __future__ import annotations

from hypothesis import given, strategies as st

from memories_app.facts.text_diff import GONE, NEW, SAME, Piece, word_diff
from tests.tables import table

TEXTS = st.text(alphabet=st.sampled_from("ab א\u200f\n.,"), max_size=40)


@given(TEXTS, TEXTS)
def test_the_pieces_hold_both_texts(older: str, newer: str) -> None:
    pieces = word_diff(older, newer)
    assert "".join(piece.text for piece in pieces if piece.kind != NEW) == older
    assert "".join(piece.text for piece in pieces if piece.kind != GONE) == newer
    assert all(piece.text for piece in pieces)


@table(
    ("older", "newer", "pieces"),
    [
        ("same", "same", [Piece(SAME, "same")]),
        (
            "The price is 35 shekels",
            "The price is 40 shekels",
            [
                Piece(SAME, "The price is "),
                Piece(GONE, "35 "),
                Piece(NEW, "40 "),
                Piece(SAME, "shekels"),
            ],
        ),
        (
            "המחיר הוא 35",
            "המחיר הוא 40",
            [Piece(SAME, "המחיר הוא "), Piece(GONE, "35"), Piece(NEW, "40")],
        ),
        ("", "new", [Piece(NEW, "new")]),
        ("gone", "", [Piece(GONE, "gone")]),
    ],
)
def test_words_are_marked(older: str, newer: str, pieces: list[Piece]) -> None:
    assert word_diff(older, newer) == pieces
