"""The candidates of a search in held texts are those that plain Python finds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memories_app.ranking.ranking import HeldTexts
from memoryproject.foundation.retrieval.query import QueryTerm
from memoryproject.foundation.retrieval.subqueries import MAX_SIMILAR, QueryPart, words_of
from memoryproject.foundation.retrieval.text_index import TextIndex
from memoryproject.foundation.text.tokenizer import Kind
from tests.unit.relevance.test_text_index import Text, segment_of, vector_of

WIDE = [f"w{number}" for number in range(60)]


def terms_of(words: Sequence[str]) -> list[QueryTerm]:
    """Return the terms of a question; each second word has another form, some are grammar."""
    return [
        QueryTerm(word, kind_of(place), forms_of(place, word)) for place, word in enumerate(words)
    ]


def kind_of(place: int) -> Kind:
    return Kind.FUNCTION if place % 3 else Kind.PLAIN


def forms_of(place: int, word: str) -> tuple[tuple[str, float], ...]:
    return ((word, 1.0), (f"~{word}", 0.9)) if place % 2 else ((word, 1.0),)


def held_by(words: Sequence[str], text: Sequence[str]) -> list[bool]:
    return [
        any(form in text for form, _ in forms_of(place, word)) for place, word in enumerate(words)
    ]


@pytest.mark.parametrize("most", [3, 30])
@pytest.mark.parametrize("asked", [3, 16, 17, 33, 60])
@given(seed=st.integers(0, 2**32), size=st.integers(0, 200))
@settings(max_examples=25)
def test_words_are_counted_and_the_best_found_however_many_there_are(
    asked: int, most: int, seed: int, size: int
) -> None:
    chance = np.random.default_rng(seed)
    words = WIDE[:asked]
    known = np.array([*words, *(f"~{word}" for word in words), "other"])
    texts = [
        Text(
            (row, row),
            chance.choice(known, 5).tolist(),
            int(chance.integers(1, 9)),
            (0, False),
            None,
        )
        for row in range(size)
    ]
    mask = chance.random(size) < 0.8
    index = TextIndex([segment_of(texts[: size // 2]), segment_of(texts[size // 2 :])])
    subquery = QueryPart(" ".join(words), terms_of(words))

    found = HeldTexts(index, mask=mask).search_words([subquery], words_of([subquery]), most)

    held = {row: held_by(words, texts[row].terms) for row in range(size) if mask[row]}
    assert list(found.frequencies[0]) == np.sum([*held.values(), [False] * asked], axis=0).tolist()
    shares = {row: found.queries[0].best_share(own) for row, own in held.items() if any(own[::3])}
    chosen = found.candidates.tolist()
    assert len(chosen) == len(set(chosen)) == min(len(shares), most)
    assert sorted(round(shares[row], 9) for row in chosen) == sorted(
        round(share, 9) for share in sorted(shares.values(), reverse=True)[:most]
    )


def test_of_texts_with_the_same_words_the_shortest_are_candidates() -> None:
    lengths = [1 + abs(row - 2 * MAX_SIMILAR) // 7 for row in range(6 * MAX_SIMILAR)]
    texts = [
        Text((row, row), ["w0", "w3"] if row % 2 else ["w0"], length, (0, False), None)
        for row, length in enumerate(lengths)
    ]
    subquery = QueryPart("w0 w1 w2 w3", terms_of(WIDE[:4]))

    found = HeldTexts(TextIndex([segment_of(texts)])).search_words(
        [subquery], words_of([subquery]), 2 * MAX_SIMILAR
    )

    assert found.frequencies == [[6 * MAX_SIMILAR, 0, 0, 3 * MAX_SIMILAR]]
    chosen = found.candidates.tolist()
    assert len(set(chosen)) == 2 * MAX_SIMILAR
    # Those with more of the words come first.
    for place, holds_more in enumerate((1, 0)):
        group = chosen[place * MAX_SIMILAR : (place + 1) * MAX_SIMILAR]
        assert {row % 2 for row in group} == {holds_more}
        assert [lengths[row] for row in group] == sorted(lengths[holds_more::2])[:MAX_SIMILAR]


@given(seed=st.integers(0, 2**32), most=st.integers(1, 40))
@settings(max_examples=25)
def test_equal_texts_are_chosen_by_their_ids_in_whatever_order_they_are_held(
    seed: int, most: int
) -> None:
    """Each process holds the texts in the order in which it read them."""
    chance = np.random.default_rng(seed)
    vectors = [vector_of(number) for number in range(3)]
    texts = [
        Text(
            (int(chance.integers(2**63)), row),
            chance.choice(WIDE[:5], 2).tolist(),
            int(chance.integers(1, 4)),
            (0, False),
            vectors[chance.integers(3)],
        )
        for row in range(4 * MAX_SIMILAR)
    ]
    subquery = QueryPart(" ".join(WIDE[:5]), terms_of(WIDE[:5]))
    found = []
    for _ in range(2):
        cut = int(chance.integers(1, len(texts)))
        held = HeldTexts(TextIndex([segment_of(texts[:cut]), segment_of(texts[cut:])]))
        by_words = held.search_words([subquery], words_of([subquery]), most).candidates
        near = [held.nearest_codes(vectors[0], most), held.nearest(vectors[:2], most)]
        found.append([held.ids(by_words), *(sorted(held.ids(each)) for each in near)])
        chance.shuffle(texts)

    assert found[0] == found[1]
