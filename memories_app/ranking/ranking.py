"""Rank texts against a query by their words and by their vectors, within one scope.

The scope holds only the texts that may be seen, so a filter never costs results. It is used for
memories here and for messages by higher packages. Texts that are kept in memory are named by their
rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memories_app.ranking.scope_cache import ids_of
from memories_app.ranking.searched_texts import (
    Question,
    Ranked,
    RankedTexts,
    SearchedTexts,
    Vector,
    WordSearch,
)
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.integrations.embedders.coverage import embed_covered
from memoryproject.foundation.retrieval.query import Scope, weigh_query
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
from memoryproject.foundation.retrieval.text_index import Mask, Rows, TextIndex

logger = logging.getLogger(__name__)

# The number of candidates by vector, and by words.
NEAREST = 100
MATCHING = 300
# So many nearest codes hold 0.999 of the nearest ten vectors: see docs/recall.md.
CODES = 400

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


def with_ids(ranked: RankedTexts, texts: SearchedTexts) -> list[Ranked]:
    """Return the ranked texts by their ids."""
    rows = zip(
        texts.ids(ranked.texts), ranked.scores.tolist(), ranked.similarities.tolist(), strict=True
    )
    # NaN is the only number that differs from itself.
    return [Ranked(key, score, near if near == near else None) for key, score, near in rows]


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

    @cached_property
    def size(self) -> int:
        return len(self.index) if self.mask is None else int(np.count_nonzero(self.mask))

    @cached_property
    def _average_length(self) -> float:
        lengths = self.index.lengths if self.mask is None else self.index.lengths[self.mask]
        return float(lengths.mean()) if len(lengths) else 0.0

    def search_words(self, subqueries: Sequence[QueryPart], words: Words, most: int) -> WordSearch:
        bits = self.index.bits(words.of_terms())
        if self.mask is not None:
            bits[~self.mask] = 0
        held = {
            bit: int(np.count_nonzero(bits & bits.dtype.type(bit))) for bit in words.bits.values()
        }
        less = self._repeated(bits, words)
        held = {bit: max(count - less, 0) for bit, count in held.items()}
        queries, frequencies = [], []
        for text in subqueries:
            terms = known_terms(text, words)
            counts = [held[words.bits[term.alternatives]] for term in terms]
            scope = Scope(max(self.size - less, 1 if less else 0), self._average_length, counts)
            queries.append(weigh_query(terms, scope))
            frequencies.append(counts)
        found = WordSearch(words, (), queries, frequencies, max(self.size - less, 0))
        return replace(found, candidates=self._best_matching(bits, subqueries, found, most))

    def _repeated(self, bits: NDArray[Any], words: Words) -> int:
        """Return how many texts with all informative words only repeat the query."""
        if self._repeats is None or not words.informative:
            return 0
        wanted = bits.dtype.type(words.informative)
        return len(self._repeats(np.flatnonzero((bits & wanted) == wanted)))

    def _best_matching(
        self,
        bits: NDArray[Any],
        subqueries: Sequence[QueryPart],
        found: WordSearch,
        most: int,
    ) -> Rows:
        """Return the texts that contain the most of the query, of equal ones the shortest first.

        Of texts with the same words only the shortest ``MAX_SIMILAR`` are returned.
        """
        rows = np.flatnonzero(bits & bits.dtype.type(found.words.informative))
        groups, group_of, sizes = _grouped(bits[rows])
        best_first = np.argsort(-_best_shares(groups, subqueries, found), kind="stable")
        enough = np.searchsorted(np.cumsum(np.minimum(sizes[best_first], MAX_SIMILAR)), most)
        chosen = best_first[: enough + 1]
        order = np.full(len(groups), -1)
        order[chosen] = np.arange(len(chosen))
        place = order[group_of]
        kept = place >= 0
        rows, place = rows[kept], place[kept]
        lengths = self.index.lengths[rows]
        for number in np.flatnonzero(sizes[chosen] > MAX_SIMILAR):
            here = np.flatnonzero(place == number)
            too_long = here[np.argsort(lengths[here], kind="stable")[MAX_SIMILAR:]]
            place[too_long] = len(chosen)
        first = np.lexsort((lengths, place))[:most]
        best: Rows = rows[first[place[first] < len(chosen)]]
        return best

    def nearest(self, vectors: Sequence[Vector], most: int) -> Rows:
        if not vectors:
            return np.empty(0, np.int64)
        near = [self.index.nearest(vector, max(CODES, most), mask=self.mask) for vector in vectors]
        rows = np.unique(np.concatenate(near))
        if len(rows) <= most:
            return rows
        cosines = self.index.cosines(rows, vectors).max(axis=1)
        chosen: Rows = rows[np.argpartition(-cosines, most)[:most]]
        return chosen

    def joined(self, one: Rows, other: Rows) -> Rows:
        rows: Rows = np.union1d(one, other).astype(np.int64)
        return rows

    def counted(self, texts: Rows, terms: Sequence[str]) -> CountedTexts:
        known = self.index.known(terms)
        columns = {term: column for column, term in enumerate(known)}
        counts = self.index.counts_of(texts, known)
        return CountedTexts(columns, counts, self.index.lengths[texts].astype(float))

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

    def taken(self, texts: Rows, places: NDArray[np.int64]) -> Rows:
        return texts[places]

    def ids(self, texts: Rows) -> list[UUID]:
        return ids_of(self.index.keys_of(texts))


def _grouped(numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the distinct numbers, which of them each one is, and how often each occurs."""
    if numbers.itemsize > 2:
        return np.unique(numbers, return_inverse=True, return_counts=True)
    # Many times as fast as sorting them.
    sizes = np.bincount(numbers)
    distinct = np.flatnonzero(sizes)
    place = np.cumsum(sizes > 0) - 1
    return distinct.astype(numbers.dtype), place[numbers], sizes[distinct]


def _best_shares(
    groups: NDArray[Any], subqueries: Sequence[QueryPart], found: WordSearch
) -> Floats:
    """Return for each set of words the largest share that it has of any text of the query."""
    best = np.zeros(len(groups))
    for text, query in zip(subqueries, found.queries, strict=True):
        bits = [found.words.bits[term.alternatives] for term in known_terms(text, found.words)]
        if query.total > 0:
            held = (groups[:, None] & np.array(bits, groups.dtype)) > 0
            share = held @ np.array([weight for weight, _ in query.terms]) / query.total
            best = np.maximum(best, np.minimum(share, 1.0) * query.substance)
    return best
