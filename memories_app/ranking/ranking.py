"""Rank texts against a query by their words and by their vectors, within one scope.

The scope holds only the texts that may be seen, so a filter never costs results. It is used for
memories here and for messages by higher packages. Texts that are kept in memory are named by their
rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memories_app.ranking.equal_numbers import numbered
from memories_app.ranking.scope_cache import ids_of
from memories_app.ranking.searched_texts import (
    Question,
    RankedTexts,
    SearchedTexts,
    Vector,
    WordSearch,
)
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.integrations.embedders.coverage import embed_covered
from memoryproject.foundation.retrieval.query import QueryTerm, Scope, weigh_query
from memoryproject.foundation.retrieval.reranking import (
    CountedTexts,
    Floats,
    best_scores,
    semantic_relevance,
)
from memoryproject.foundation.retrieval.subqueries import (
    MAX_SIMILAR,
    QueryPart,
    Words,
    known_terms,
    words_of,
)
from memoryproject.foundation.retrieval.text_index import (
    NO_VECTOR,
    Mask,
    Rows,
    TextIndex,
    hashes_of,
)

logger = logging.getLogger(__name__)

# The number of candidates by vector, and by words.
NEAREST = 100
MATCHING = 300
# So many nearest codes hold 0.999 of the nearest ten vectors: see docs/recall.md.
CODES = 400
# So many times as many texts as are wanted are looked through faster than a choice among them.
FEW = 5

# Returns which of these texts only repeat the query.
Repeats: TypeAlias = Callable[[Rows], Rows]


def prepare_query(
    subqueries: Sequence[QueryPart], embedder: Embedder, *, topics: Sequence[str] = ()
) -> tuple[Question, list[Vector | None], bool]:
    """Return the query with a vector for each of ``topics``, and whether the embedder succeeded.

    The embedder is called once.
    """
    texts = [*(text.text for text in subqueries), *topics]
    # A topic is often the whole question.
    distinct = list(dict.fromkeys(texts))
    vectors: Sequence[Vector | None] = [None] * len(texts)
    worked = True
    try:
        made = dict(zip(distinct, embed_covered(embedder, distinct), strict=True))
        vectors = [made[text] for text in texts]
    except EmbedderError as error:
        logger.error("The query could not be embedded, words decide alone: %s", error)
        worked = False
    question = Question(
        subqueries, vectors[: len(subqueries)], embedder.model_id, embedder.calibration
    )
    return question, list(vectors[len(subqueries) :]), worked


def search_words(subqueries: Sequence[QueryPart], texts: SearchedTexts) -> WordSearch:
    """Return the lexical matches of the query in the scope."""
    return texts.search_words(subqueries, words_of(subqueries), MATCHING)


def rank(
    question: Question, texts: SearchedTexts, *, top_k: int, found: WordSearch | None = None
) -> RankedTexts:
    """Return the best ``top_k`` texts of the scope, best first.

    found: the result of ``search_words`` for this scope, if it exists already.
    """
    found = search_words(question.subqueries, texts) if found is None else found
    vectors = [vector for vector in question.vectors if vector is not None]
    candidates = texts.joined(found.candidates, texts.nearest(vectors, NEAREST))
    counted = texts.counted(candidates, list(found.words.of_terms()))
    cosines = texts.cosines(candidates, question.vectors)
    curve = question.calibration
    near = semantic_relevance(cosines, midpoint=curve.midpoint, slope=curve.slope)
    scores = best_scores(found.queries, counted, near)
    best = texts.ordered(candidates, scores, top_k)
    return RankedTexts(texts.taken(candidates, best), scores[best], cosines[best, 0])


class HeldTexts:
    """The texts of an index, or those of them that a mask marks. See ``SearchedTexts``.

    repeats: returns which of some texts only repeat the query; they don't make its words frequent.
    """

    def __init__(
        self, index: TextIndex, *, mask: Mask | None = None, repeats: Repeats | None = None
    ) -> None:
        self.index = index
        self.mask = mask
        self._repeats = repeats
        # Of the last searched query: its words, those of them that are looked up for some texts
        # only, and for each text the bits of the others.
        self._words = Words({}, 0)
        self._common: dict[str, int] = {}
        self._bits: NDArray[Any] = np.zeros(0, np.uint16)

    @cached_property
    def size(self) -> int:
        return len(self.index) if self.mask is None else int(np.count_nonzero(self.mask))

    @cached_property
    def _average_length(self) -> float:
        total = sum(segment.words for segment in self.index.segments)
        return (total - int(self.index.lengths_of(self._hidden).sum())) / max(self.size, 1)

    @cached_property
    def _hidden(self) -> Rows:
        """The texts without a mark, which are usually few."""
        return np.empty(0, np.int64) if self.mask is None else np.flatnonzero(~self.mask)

    def search_words(self, subqueries: Sequence[QueryPart], words: Words, most: int) -> WordSearch:
        forms = words.of_terms()
        known = {form: forms[form] for form in self.index.known(list(forms))}
        self._words, self._common = words, _common(words, known)
        rest = {form: bit for form, bit in known.items() if form not in self._common}
        self._bits = self.index.bits(rest, most=max(words.bits.values(), default=0))
        if self.mask is not None:
            np.copyto(self._bits, 0, where=~self.mask)
        wanted = self._bits.dtype.type(words.informative)
        rows = np.flatnonzero((self._bits & wanted) != 0)
        matches = _Matches.of(rows, self._bits.take(rows))
        every = matches.counts(words) | self._other_counts(reduce(or_, rest.values(), 0))
        less = self._repeated(matches, words)
        held = {bit: max(count - less, 0) for bit, count in every.items()}
        queries, frequencies = [], []
        for text in subqueries:
            terms = known_terms(text, words)
            counts = [held[words.bits[term.alternatives]] for term in terms]
            scope = Scope(max(self.size - less, 1 if less else 0), self._average_length, counts)
            queries.append(weigh_query(terms, scope))
            frequencies.append(counts)
        found = WordSearch(words, (), queries, frequencies, max(self.size - less, 0))
        rows = self._possible(matches, subqueries, found, most)
        matches = _Matches.of(rows, self._bits_of(rows))
        return replace(found, candidates=self._best_matching(matches, subqueries, found, most))

    def _possible(
        self, matches: _Matches, subqueries: Sequence[QueryPart], found: WordSearch, most: int
    ) -> Rows:
        """Return the texts that are among the ``most`` best if they hold all common words.

        Without the common words, the ``most`` best by the others contain so much of the query.
        """
        if len(matches.rows) <= FEW * most:
            return matches.rows
        common = matches.words.dtype.type(reduce(or_, self._common.values(), 0))
        groups = np.stack([matches.words, matches.words | common])
        least, largest = _best_shares(groups, subqueries, found)
        best_first = np.argsort(-least)
        sizes = np.minimum(matches.sizes[best_first], MAX_SIMILAR)
        last = np.searchsorted(np.cumsum(sizes), most)
        if last == len(sizes):
            return matches.rows
        # Sums in another order may differ in their last bits.
        return matches.rows_of(largest >= least[best_first[last]] - 1e-9)

    def _bits_of(self, texts: Rows) -> NDArray[Any]:
        """Return the bits of the words that these texts hold."""
        hashes = hashes_of(list(self._common))
        bits = np.array(list(self._common.values()), self._bits.dtype)
        held = self._bits.take(texts)
        held |= self.index.gathered(
            texts, lambda part, rows: part.bits_of(rows, hashes, bits), held
        )
        return held

    def _other_counts(self, rest: int) -> dict[int, int]:
        """Return how many texts hold each word that isn't informative.

        ``rest``: the bits of the words that all texts have been searched for.
        """
        hashes, bits = hashes_of(list(self._common)), list(self._common.values())
        counts = dict.fromkeys(self._words.bits.values(), 0)
        for part in self.index.segments:
            for number, postings in part.postings_of(hashes):
                counts[bits[number]] += len(postings)
        if len(self._hidden):
            hidden = self._bits_of(self._hidden)
            for bit in bits:
                counts[bit] -= int(np.count_nonzero(hidden & hidden.dtype.type(bit)))
        for bit in counts:
            if bit & rest & ~self._words.informative:
                counts[bit] = int(np.count_nonzero(self._bits & self._bits.dtype.type(bit)))
        return {bit: count for bit, count in counts.items() if not bit & self._words.informative}

    def _repeated(self, matches: _Matches, words: Words) -> int:
        """Return how many texts with all informative words only repeat the query."""
        if self._repeats is None or not words.informative:
            return 0
        wanted = matches.words.dtype.type(words.informative)
        return len(self._repeats(matches.rows_of((matches.words & wanted) == wanted)))

    def _best_matching(
        self, matches: _Matches, subqueries: Sequence[QueryPart], found: WordSearch, most: int
    ) -> Rows:
        """Return the texts that contain the most of the query, of equal ones the shortest first.

        Of texts with the same words only the shortest ``MAX_SIMILAR`` are returned.
        """
        shares = _best_shares(matches.words, subqueries, found)
        best_first = np.argsort(-shares, kind="stable")
        sizes = np.minimum(matches.sizes[best_first], MAX_SIMILAR)
        chosen = best_first[: np.searchsorted(np.cumsum(sizes), most) + 1]
        rows, place = matches.of_groups(chosen)
        lengths = self.index.lengths_of(rows)
        kept = np.ones(len(rows), bool)
        ends = np.cumsum(matches.sizes[chosen])
        # They are few: each is a third of what is wanted.
        for number in np.flatnonzero(matches.sizes[chosen] > MAX_SIMILAR):
            start, end = ends[number] - matches.sizes[chosen[number]], ends[number]
            kept[start:end] = False
            kept[start + self._smallest(lengths[start:end], MAX_SIMILAR, rows[start:end])] = True
        rows = rows[kept]
        best: Rows = rows[np.lexsort((self._order_of(rows), lengths[kept], place[kept]))][:most]
        return best

    def holding(self, texts: Rows, terms: Sequence[QueryTerm], *, lacking: float) -> Rows:
        """Return those of these texts that lack at most so many of these words.

        The words are of the last searched query. A word beyond ``MAX_WORDS`` counts as held.
        """
        wanted = reduce(or_, (self._words.bits.get(term.alternatives, 0) for term in terms), 0)
        rare = wanted & ~reduce(or_, self._common.values(), 0)
        # Few texts are left for the common words.
        texts = texts[_lacking(self._bits.take(texts), rare) <= lacking]
        return texts if rare == wanted else texts[_lacking(self._bits_of(texts), wanted) <= lacking]

    def nearest(self, vectors: Sequence[Vector], most: int) -> Rows:
        if not vectors:
            return np.empty(0, np.int64)
        near = [self.nearest_codes(vector, max(CODES, most)) for vector in vectors]
        rows = np.unique(np.concatenate(near)) if len(near) > 1 else near[0]
        if len(rows) <= most:
            return rows
        cosines = self.index.cosines(rows, vectors).max(axis=1)
        chosen: Rows = rows[self._smallest(-cosines, most, rows)]
        return chosen

    def nearest_codes(self, vector: Vector, most: int) -> Rows:
        """Return the ``most`` texts whose codes are nearest to the vector's, in no order."""
        near = self.index.distances(vector)
        if self.mask is not None:
            np.copyto(near, NO_VECTOR, where=~self.mask)
        rows = self._smallest(near, most)
        return rows[near[rows] < NO_VECTOR]

    def _smallest(self, values: NDArray[Any], most: int, texts: Rows | None = None) -> Rows:
        """Return the places of the ``most`` smallest values, in no order.

        Of equal ones those with the lowest ids, because rows are in another order in each process.
        ``texts``: those that have the values, all by default.
        """
        if not 0 < most < len(values):
            return np.arange(min(most, len(values)))
        limit = np.partition(values, most - 1)[most - 1]
        less, equal = np.flatnonzero(values < limit), np.flatnonzero(values == limit)
        wanted = most - len(less)
        if wanted < len(equal):
            order = self._order_of(equal if texts is None else texts[equal])
            equal = equal[np.argpartition(order, wanted)[:wanted]]
        return np.concatenate([less, equal])

    def _order_of(self, texts: Rows) -> NDArray[np.uint64]:
        """Return numbers in the order of the texts' ids: their first halves, which differ."""
        order: NDArray[np.uint64] = self.index.keys_of(texts)[:, 0]
        return order

    def joined(self, one: Rows, other: Rows) -> Rows:
        rows: Rows = np.union1d(one, other).astype(np.int64)
        return rows

    def counted(self, texts: Rows, terms: Sequence[str]) -> CountedTexts:
        known = self.index.known(terms)
        columns = {term: column for column, term in enumerate(known)}
        counts = self.index.counts_of(texts, known)
        return CountedTexts(columns, counts, self.index.lengths_of(texts).astype(float))

    def cosines(self, texts: Rows, vectors: Sequence[Vector | None]) -> Floats:
        return self.index.cosines(texts, vectors)

    def ordered(self, texts: Rows, scores: Floats, most: int) -> NDArray[np.int64]:
        if most < len(texts):
            # The others needn't be sorted.
            least = np.partition(scores, len(scores) - most)[len(scores) - most]
            best = np.flatnonzero(scores >= least)
        else:
            best = np.arange(len(texts))
        keys = self.index.keys_of(texts[best])
        order: NDArray[np.int64] = best[np.lexsort((keys[:, 1], keys[:, 0], -scores[best]))[:most]]
        return order

    def best_first(self, texts: Rows, scores: Floats, few: int) -> Iterator[int]:
        """Return all places in the order of ``ordered``. More than a ``few`` take longer."""
        yield from self.ordered(texts, scores, few).tolist()
        if few < len(texts):
            yield from self.ordered(texts, scores, len(texts))[few:].tolist()

    def taken(self, texts: Rows, places: NDArray[np.int64]) -> Rows:
        return texts[places]

    def ids(self, texts: Rows) -> list[UUID]:
        return ids_of(self.index.keys_of(texts))


def _common(words: Words, known: Mapping[str, int]) -> dict[str, int]:
    """Return the bits of the words that make no text a candidate, by their one known form.

    Most of them are grammar. Most texts hold them, but only those with other words matter.
    """
    found = {}
    for alternatives, bit in words.bits.items():
        forms = [form for form, _ in alternatives if form in known]
        if len(forms) == 1 and known[forms[0]] == bit and not bit & words.informative:
            found[forms[0]] = bit
    return found


def _lacking(held: NDArray[Any], wanted: int) -> NDArray[np.uint8]:
    """Return how many of the wanted bits each number lacks."""
    lacked: NDArray[np.uint8] = np.bitwise_count(~held & held.dtype.type(wanted))
    return lacked


@dataclass(frozen=True)
class _Matches:
    """The texts that hold informative words of a query. Those with the same words are a group.

    ``rows``: the texts. ``numbers``: for each the number of its group. ``words``: the bits of each
    group, in order. ``own``: the number of each group. ``sizes``: of the groups.
    """

    rows: Rows
    numbers: NDArray[Any]
    words: NDArray[Any]
    own: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Rows, held: NDArray[Any]) -> _Matches:
        """``held``: the bits of each text."""
        numbers = held if held.itemsize == 2 else numbered(held)
        sizes = np.bincount(numbers)
        own = np.flatnonzero(sizes)
        if numbers is held:
            return cls(rows, numbers, own.astype(held.dtype), own, sizes[own])
        one_of = np.zeros(len(sizes), held.dtype)
        one_of[numbers] = held
        own = own[np.argsort(one_of[own])]
        return cls(rows, numbers, one_of[own], own, sizes[own])

    def counts(self, words: Words) -> dict[int, int]:
        """Return for the bit of each word how many texts hold it."""
        bits = list(words.bits.values())
        held = (self.words[:, None] & np.array(bits, self.words.dtype)) > 0
        return dict(zip(bits, (self.sizes @ held).tolist(), strict=True))

    def rows_of(self, chosen: Mask) -> Rows:
        """Return the texts of the chosen groups, in order."""
        marks = np.zeros(int(self.own.max(initial=0)) + 1, bool)
        marks[self.own[chosen]] = True
        rows: Rows = self.rows[marks.take(self.numbers)]
        return rows

    def of_groups(self, groups: Rows) -> tuple[Rows, NDArray[Any]]:
        """Return the texts of these groups, group by group, and the place of each one's group."""
        # Small numbers are sorted by counting.
        places = np.zeros(int(self.own.max(initial=0)) + 1, np.min_scalar_type(len(groups)))
        places[self.own[groups]] = np.arange(1, len(groups) + 1)
        place = places.take(self.numbers)
        found = np.flatnonzero(place)
        found = found[np.argsort(place[found], kind="stable")]
        return self.rows[found], place[found]


def _best_shares(
    groups: NDArray[Any], subqueries: Sequence[QueryPart], found: WordSearch
) -> Floats:
    """Return for each set of words the largest share that it has of any text of the query."""
    best = np.zeros(groups.shape)
    for text, query in zip(subqueries, found.queries, strict=True):
        bits = [found.words.bits[term.alternatives] for term in known_terms(text, found.words)]
        if query.total > 0:
            held = (groups[..., None] & np.array(bits, groups.dtype)) > 0
            share = held @ np.array([weight for weight, _ in query.terms]) / query.total
            best = np.maximum(best, np.minimum(share, 1.0) * query.substance)
    return best
