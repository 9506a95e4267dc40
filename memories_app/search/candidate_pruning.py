"""Which texts of a large scope can be among the best by their words, by a sample of it.

Words that together are worth less than the best texts hold lead to no text that is among them:
what "MaxScore" rests on (Turtle and Flood, "Query evaluation: strategies and optimizations",
1995). Here a sample says how much the best hold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import and_, or_
from typing import Any

from django.contrib.postgres.indexes import GinIndex
from django.db.models import Q, QuerySet

from memories_app.search.lexical_search import MAX_SIMILAR, Match, Words, best_share, known_terms
from memoryproject.foundation.retrieval.relevance import LexicalQuery
from memoryproject.foundation.retrieval.subqueries import QueryPart
from memoryproject.foundation.text.query import QueryTerm

# With more forms of words a text without an index is not compared before a pass.
MAX_COMPARED = 30


@dataclass(frozen=True)
class Way:
    """How a text can hold enough of a question: all words of ``must``, and one of ``one_of``."""

    must: list[int]
    one_of: set[int]

    @classmethod
    def to(
        cls, least: float, terms: Sequence[QueryTerm], query: LexicalQuery, words: Words
    ) -> Way | None:
        """None where all words together are not enough.

        Words that together are not enough need no looking for: a text must hold one of the
        others. A word without which all others are not enough must be there.
        """
        if query.total <= 0 or query.substance <= 0:
            return None
        # Just below, for what is lost in rounding.
        need = least / query.substance * query.total * (1 - 1e-9)
        worth = {
            words.bits[term.alternatives]: weight
            for term, (weight, _) in zip(terms, query.terms, strict=True)
        }
        total = sum(worth.values())
        if total < need:
            return None
        # A text without a telling word is no candidate, so that the others go first.
        least_first = sorted(worth, key=lambda bit: (bool(bit & words.telling), worth[bit]))
        sums = accumulate(worth[bit] for bit in least_first)
        one_of = {
            bit
            for bit, together in zip(least_first, sums, strict=True)
            if together >= need and bit & words.telling
        }
        return cls([bit for bit in worth if total - worth[bit] < need], one_of)


def ways_to_be_best(
    words: Words,
    asked: Sequence[QueryPart],
    queries: Sequence[LexicalQuery],
    likely: Sequence[tuple[Match, float]],
    *,
    enough: int,
) -> list[Way]:
    """How a text can hold as much of the question as the best ``enough`` of the scope.

    likely: the sample's matches, each with how many such texts the scope holds, about.
    """
    least = _least_share(words, asked, queries, likely, enough)
    ways = [
        Way.to(least, known_terms(text, words), query, words)
        for text, query in zip(asked, queries, strict=True)
    ]
    return [way for way in ways if way is not None]


def wanted_texts(words: Words, rare: set[int], ways: Sequence[Way], *, indexed: bool) -> Q | None:
    """The texts that hold a rare word, or enough of the frequent ones in one of the ways. None
    for a pass over all texts."""
    if not indexed:
        # Each text is looked at, and comparing it once with a few words is quicker than a pass.
        any_of = rare.union(*(way.one_of for way in ways))
        return _of_any(words, any_of) if len(_forms(words, any_of)) <= MAX_COMPARED else None
    wanted = _of_any(words, rare)
    for way in ways:
        must = [_of_any(words, {bit}) for bit in way.must]
        wanted |= reduce(and_, must, _of_any(words, way.one_of))
    return wanted


def has_index(scope: QuerySet[Any]) -> bool:
    """Whether an index leads to the texts that hold a term."""
    indexes = scope.model._meta.indexes
    return any(isinstance(index, GinIndex) and index.fields == ["terms"] for index in indexes)


def _least_share(
    words: Words,
    asked: Sequence[QueryPart],
    queries: Sequence[LexicalQuery],
    likely: Sequence[tuple[Match, float]],
    enough: int,
) -> float:
    """The share of the question that ``enough`` texts of the scope hold; 0 where there aren't
    so many."""
    shares = [
        (best_share(match, words, asked, queries), texts)
        for match, texts in likely
        if match.bits & words.telling
    ]
    found = 0.0
    for share, texts in sorted(shares, reverse=True):
        # Of texts that hold the same words no more are looked at.
        found += min(texts, MAX_SIMILAR)
        if found >= enough:
            return share
    return 0.0


def _of_any(words: Words, bits: Collection[int]) -> Q:
    """The texts that hold one of these words."""
    return Q(terms__overlap=_forms(words, bits))


def _forms(words: Words, bits: Collection[int]) -> list[str]:
    looked_for = reduce(or_, bits, 0)
    return [form for form, own in words.of_terms().items() if own & looked_for]
