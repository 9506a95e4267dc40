"""The index of texts in memory finds what plain Python finds, and keeps nothing that went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories_app.ranking.ranking import CODES, HeldTexts
from memoryproject.foundation.retrieval.segment_merging import merged
from memoryproject.foundation.retrieval.text_index import (
    MAX_COUNT,
    Segment,
    TextIndex,
    Vectors,
    codes_of,
    hashes_of,
    ranges,
)
from tests.embedding.clusters import Clusters

DIMENSIONS = 70
WORDS = ["invoice", "testcorp", "owe", "status", "zeta", "שלום", "5000", "late"]
COLUMNS = np.dtype([("place", np.int32), ("asks", np.bool_)])


@dataclass(frozen=True)
class Text:
    """One text as it goes into a segment."""

    key: tuple[int, int]
    terms: Sequence[str]
    length: int
    column: tuple[int, bool]
    vector: tuple[float, ...] | None


def vector_of(seed: int) -> tuple[float, ...]:
    """Return a vector of any length; in some a few numbers are much larger than the others."""
    chance = np.random.default_rng(seed)
    numbers = chance.normal(size=DIMENSIONS) * chance.choice([0.01, 1.0, 50.0])
    numbers[: seed % 3] *= 8
    return tuple(numbers.tolist())


VECTORS = st.none() | st.integers(0, 2**32).map(vector_of)
# Some share their first half, as no random ids do.
HALVES = st.integers(0, 2) | st.integers(0, 2**64 - 1)
KEYS = st.tuples(HALVES, HALVES)
TERMS = st.sampled_from(WORDS)
TEXTS = st.builds(
    Text,
    key=KEYS,
    terms=st.lists(TERMS, max_size=8),
    length=st.integers(0, 500),
    column=st.tuples(st.integers(-9, 9), st.booleans()),
    vector=VECTORS,
)


def segment_of(texts: Sequence[Text]) -> Segment:
    known = np.array([text.vector is not None for text in texts], bool)
    present = np.array([text.vector for text in texts if text.vector is not None], np.float32)
    return Segment.of(
        keys=np.array([text.key for text in texts], np.uint64).reshape(-1, 2),
        lengths=np.array([text.length for text in texts], np.int32),
        columns=np.array([text.column for text in texts], COLUMNS),
        vectors=Vectors.of(present, known) if known.any() else Vectors.none(len(texts)),
        hashes=hashes_of([term for text in texts for term in text.terms]),
        sizes=np.array([len(text.terms) for text in texts], np.int64),
    )


@st.composite
def indexes(draw: st.DrawFn) -> tuple[TextIndex, list[Text]]:
    """Return an index, and the texts that it holds, in order.

    Rows went from some of its segments, and some were merged.
    """
    texts = draw(st.lists(TEXTS, unique_by=lambda text: text.key, max_size=14))
    cuts = sorted(draw(st.sets(st.integers(0, len(texts)), max_size=3)))
    segments, left = [], []
    for start, end in zip([0, *cuts], [*cuts, len(texts)], strict=True):
        part = texts[start:end]
        gone = draw(st.sets(st.sampled_from(range(len(part))))) if part else set()
        segment = segment_of(part)
        segments.append(segment.without(np.array(sorted(gone), np.int64)) if gone else segment)
        left += [text for row, text in enumerate(part) if row not in gone]
    joined = draw(st.integers(0, len(segments)))
    if joined:
        segments[:joined] = [merged(segments[:joined])]
    return TextIndex(segments), left


INDEXES = indexes()


def some_rows(data: st.DataObject, texts: Sequence[Text]) -> list[int]:
    return data.draw(st.lists(st.sampled_from(range(len(texts))))) if texts else []


def as_rows(rows: Sequence[int]) -> np.ndarray:
    return np.array(rows, np.int64)


@given(INDEXES)
def test_it_holds_each_text_that_did_not_go(made: tuple[TextIndex, list[Text]]) -> None:
    index, texts = made

    assert len(index) == len(texts)
    assert index.lengths_of(np.arange(len(index))).tolist() == [text.length for text in texts]
    assert index.marked(lambda segment: segment.columns["asks"]).tolist() == [
        text.column[1] for text in texts
    ]


@given(INDEXES, st.dictionaries(TERMS | st.just("unknown"), st.integers(1, 2**63 - 1)))
def test_each_text_has_the_bits_of_its_terms(
    made: tuple[TextIndex, list[Text]], bits: dict[str, int]
) -> None:
    index, texts = made
    expected = []
    for text in texts:
        found = 0
        for term in text.terms:
            found |= bits.get(term, 0)
        expected.append(found)

    assert index.bits(bits).tolist() == expected


@pytest.mark.parametrize("asked", [5, 500, 5_000])
def test_of_frequent_and_rare_terms_some_texts_have_the_same_bits(asked: int) -> None:
    """They are looked up in other ways for few texts and for many."""
    chance, size = np.random.default_rng(7), 3_000
    shares = {f"w{place}": share for place, share in enumerate((0.0005, 0.02, 0.03, 0.04, 0.9))}
    texts = [
        Text(
            (row, row),
            [term for term in shares if chance.random() < shares[term]],
            1,
            (0, False),
            None,
        )
        for row in range(size)
    ]
    bits = {term: 1 << place for place, term in enumerate(shares)}
    segment, rows = segment_of(texts), chance.integers(0, size, asked)
    hashes, values = hashes_of(list(bits)), np.array(list(bits.values()), np.uint16)

    found = [segment.bits_of(rows, hashes, values) for _ in range(2)]

    expected = [sum(bits[term] for term in texts[row].terms) for row in rows]
    assert [each.tolist() for each in found] == [expected, expected]


@given(INDEXES, st.lists(TERMS | st.just("unknown"), unique=True), st.data())
def test_each_term_is_counted(
    made: tuple[TextIndex, list[Text]], terms: list[str], data: st.DataObject
) -> None:
    index, texts = made
    rows = some_rows(data, texts)

    found = index.counts_of(as_rows(rows), terms)

    assert found.tolist() == [[Counter(texts[row].terms)[term] for term in terms] for row in rows]


@pytest.mark.parametrize("times", [MAX_COUNT - 1, MAX_COUNT, MAX_COUNT + 1, 10 * MAX_COUNT])
def test_a_count_that_is_too_large_is_the_largest(times: int) -> None:
    index = TextIndex([segment_of([Text((1, 1), ["late"] * times, times, (0, False), None)])])

    assert index.counts_of(as_rows([0]), ["late"]).tolist() == [[min(times, MAX_COUNT)]]


@given(INDEXES, st.lists(KEYS), st.data())
def test_texts_are_found_by_their_keys(
    made: tuple[TextIndex, list[Text]], others: list[tuple[int, int]], data: st.DataObject
) -> None:
    index, texts = made
    rows = some_rows(data, texts)
    keys = list(dict.fromkeys([texts[row].key for row in rows] + others))

    found = index.rows_of(np.array(keys, np.uint64).reshape(-1, 2))

    assert sorted(found.tolist()) == [row for row, text in enumerate(texts) if text.key in keys]


@given(INDEXES, st.data())
def test_texts_have_their_keys_and_columns(
    made: tuple[TextIndex, list[Text]], data: st.DataObject
) -> None:
    index, texts = made
    rows = some_rows(data, texts)

    assert [tuple(key) for key in index.keys_of(as_rows(rows)).tolist()] == [
        texts[row].key for row in rows
    ]
    assert index.columns_of(as_rows(rows)).tolist() == [texts[row].column for row in rows]


def cosine(one: Sequence[float] | None, other: Sequence[float] | None) -> float:
    if one is None or other is None:
        return float("nan")
    return float(np.dot(one, other) / np.linalg.norm(one) / np.linalg.norm(other))


@given(INDEXES, st.lists(VECTORS, max_size=3), st.data())
def test_cosines_are_nearly_exact(
    made: tuple[TextIndex, list[Text]],
    asked: list[tuple[float, ...] | None],
    data: st.DataObject,
) -> None:
    index, texts = made
    rows = some_rows(data, texts)
    # Near to one of the texts at least.
    asked = [*asked, *(texts[row].vector for row in rows[:1])]

    found = index.cosines(as_rows(rows), asked)

    assert found.shape == (len(rows), len(asked))
    expected = [[cosine(texts[row].vector, vector) for vector in asked] for row in rows]
    np.testing.assert_allclose(
        found, np.reshape(expected, found.shape), rtol=0, atol=0.01, equal_nan=True
    )


@given(INDEXES, VECTORS.filter(bool), st.integers(0, 14), st.data())
def test_the_nearest_codes_are_those_with_the_fewest_other_bits(
    made: tuple[TextIndex, list[Text]],
    asked: tuple[float, ...],
    most: int,
    data: st.DataObject,
) -> None:
    index, texts = made
    mask = np.array([data.draw(st.booleans()) for _ in texts], bool)
    others = {
        row: sum((one > 0) != (other > 0) for one, other in zip(text.vector, asked, strict=True))
        for row, text in enumerate(texts)
        if mask[row] and text.vector is not None
    }

    found = HeldTexts(index, mask=mask).nearest_codes(asked, most).tolist()

    assert len(found) == len(set(found))
    assert set(found) <= set(others)
    assert sorted(others[row] for row in found) == sorted(others.values())[:most]


@pytest.mark.parametrize("segments", [1, 3])
def test_the_nearest_vectors_are_among_the_nearest_codes(segments: int) -> None:
    clusters = Clusters(256, seed=5)
    vectors = clusters.of(2_000)
    texts = [
        Text((number, number), [], 0, (0, False), tuple(vector))
        for number, vector in enumerate(vectors.tolist())
    ]
    index = TextIndex([segment_of(texts[part::segments]) for part in range(segments)])
    numbers = index.keys_of(np.arange(len(index)))[:, 0]
    questions = clusters.beside(vectors, 50)
    shares = []
    for question in questions:
        truth = set(np.argsort(-(vectors @ question))[:10].tolist())
        found = numbers[HeldTexts(index).nearest_codes(question.tolist(), CODES)]
        assert len(found) == CODES
        shares.append(len(truth & set(found.tolist())) / len(truth))

    assert sum(shares) / len(shares) >= 0.99


def test_without_a_vector_no_text_is_near() -> None:
    index = TextIndex([segment_of([Text((1, 1), ["late"], 1, (0, False), None)])])

    assert HeldTexts(index).nearest_codes(vector_of(1), 10).tolist() == []


def test_an_index_may_be_empty() -> None:
    index = TextIndex([])

    assert len(index) == 0
    assert index.bits({"late": 1}).tolist() == []
    assert index.rows_of(np.array([(1, 1)], np.uint64)).tolist() == []
    assert HeldTexts(index).nearest_codes(vector_of(1), 10).tolist() == []


SECRET = Text(
    key=(0x1122334455667788, 0x99AABBCCDDEEFF01),
    terms=["hydrangea", "cellar"],
    length=0x5EC4E7,
    column=(0x7A7B7C7D, True),
    vector=vector_of(7),
)
OTHERS = [
    Text((number, number + 100), ["invoice", "cellar"], number, (number, False), vector_of(number))
    for number in range(20, 30)
]


def arrays_of(holder: Any) -> Iterator[np.ndarray]:
    """Return all arrays of a segment, those that are kept for later and those behind views too."""
    assert {field.name for field in fields(holder)} <= set(vars(holder))
    for value in vars(holder).values():
        if isinstance(value, Vectors):
            yield from arrays_of(value)
        while isinstance(value, np.ndarray):
            yield value
            value = value.base


def bytes_of(segment: Segment) -> bytes:
    segment.rows_of(segment.keys)
    arrays = list(arrays_of(segment))
    assert not any(array.dtype.hasobject for array in arrays)
    return b"|".join(array.tobytes() for array in arrays)


def traces_of(text: Text) -> dict[str, bytes]:
    """Return the values of the text alone as the arrays hold them."""
    assert text.vector is not None
    vector = np.array([text.vector], np.float32)
    own = Vectors.of(vector, np.array([True]))
    return {
        "first half of the id": np.uint64(text.key[0]).tobytes(),
        "second half of the id": np.uint64(text.key[1]).tobytes(),
        "hash of a term": hashes_of(text.terms[:1]).tobytes(),
        "length": np.int32(text.length).tobytes(),
        "column": np.int32(text.column[0]).tobytes(),
        "vector": own.steps.tobytes(),
        "scale": own.scales.tobytes(),
        **{
            f"number {place} of its code": number.tobytes()
            for place, number in enumerate(codes_of(vector)[0])
        },
    }


@pytest.mark.parametrize("is_merged", [False, True])
def test_nothing_of_a_row_that_went_is_kept(is_merged: bool) -> None:
    whole = segment_of([*OTHERS[:5], SECRET, *OTHERS[5:]])
    assert all(trace in bytes_of(whole) for trace in traces_of(SECRET).values())

    left = whole.without(as_rows([5]))
    left = merged([left, segment_of(OTHERS[:1])]) if is_merged else left

    kept = bytes_of(left)
    assert [name for name, trace in traces_of(SECRET).items() if trace in kept] == []
    assert all(trace in kept for trace in traces_of(OTHERS[7]).values())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-32-le"])
def test_no_terms_text_is_held(encoding: str) -> None:
    segment = segment_of([*OTHERS, SECRET])

    for held in (segment, segment.without(as_rows([0])), merged([segment, segment_of(OTHERS)])):
        for term in (*SECRET.terms, *OTHERS[0].terms):
            assert term.encode(encoding) not in bytes_of(held)


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 6))))
def test_ranges_are_all_their_numbers_in_order(made: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in made], np.int64)
    sizes = np.array([size for _, size in made], np.int64)

    numbers, owner = ranges(starts, starts + sizes)

    pairs = [
        (start + step, place) for place, (start, size) in enumerate(made) for step in range(size)
    ]
    assert list(zip(numbers.tolist(), owner.tolist(), strict=True)) == pairs
