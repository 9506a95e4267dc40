"""Prune the texts of a large scope that can't rank among the best by their words.

If some words together are worth less than the score of the best texts, texts with only these
words can't be among the best. This is the idea of "MaxScore" (Turtle and Flood, "Query
evaluation: strategies and optimizations", 1995). Here a sample estimates the best score.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import and_, or_

from django.db.models import Q

from memories_app.ranking.lexical_search import Match, best_share
from memoryproject.foundation.retrieval.query import LexicalQuery, QueryTerm
from memoryproject.foundation.retrieval.subqueries import (
    MAX_SIMILAR,
    QueryPart,
    Words,
    known_terms,
)


@dataclass(frozen=True)
class Route:
    """One way to contain enough of a query: all words of ``must``, and one of ``one_of``."""

    must: list[int]
    one_of: set[int]

    @classmethod
    def to(
        cls, least: float, terms: Sequence[QueryTerm], query: LexicalQuery, words: Words
    ) -> Route | None:
        """Return the way to reach a share; None if all words together are not enough.

        Words that together are not enough need no search: a text must contain one of the others. A
        word is required if all other words together are not enough.
        """
        if query.total <= 0 or query.substance <= 0:
            return None
        # Slightly lower, to allow for rounding.
        need = least / query.substance * query.total * (1 - 1e-9)
        worth = {
            words.bits[term.alternatives]: weight
            for term, (weight, _) in zip(terms, query.terms, strict=True)
        }
        total = sum(worth.values())
        if total < need:
            return None
        # A text without a content word is no candidate, so the other words come first.
        least_first = sorted(worth, key=lambda bit: (bool(bit & words.informative), worth[bit]))
        sums = accumulate(worth[bit] for bit in least_first)
        one_of = {
            bit
            for bit, together in zip(least_first, sums, strict=True)
            if together >= need and bit & words.informative
        }
        return cls([bit for bit in worth if total - worth[bit] < need], one_of)

    def leads_to(self, bits: int) -> bool:
        """Return whether a text with these words contains enough."""
        return all(bits & bit for bit in self.must) and any(bits & bit for bit in self.one_of)


def routes_to_best(
    words: Words,
    subqueries: Sequence[QueryPart],
    queries: Sequence[LexicalQuery],
    likely: Sequence[tuple[Match, float]],
    *,
    enough: int,
) -> list[Route]:
    """Return the ways to contain as much of the query as the best ``enough`` texts.

    likely: the matches of the sample, each with an estimate of such texts in the scope.
    """
    least = _least_share(words, subqueries, queries, likely, enough)
    routes = [
        Route.to(least, known_terms(text, words), query, words)
        for text, query in zip(subqueries, queries, strict=True)
    ]
    return [route for route in routes if route is not None]


def wanted_texts(words: Words, rare: set[int], routes: Sequence[Route]) -> Q:
    """Return a filter for texts with a rare word, or with enough frequent words."""
    wanted = _of_any(words, rare)
    for route in routes:
        must = [_of_any(words, {bit}) for bit in route.must]
        wanted |= reduce(and_, must, _of_any(words, route.one_of))
    return wanted


def wanted_share(
    sampled: Sequence[Match], rare: Collection[int], routes: Sequence[Route], size: int
) -> float:
    """Return the share of a sample of ``size`` texts that ``wanted_texts`` would find."""
    any_rare = reduce(or_, rare, 0)
    wanted = sum(
        match.texts
        for match in sampled
        if match.bits & any_rare or any(route.leads_to(match.bits) for route in routes)
    )
    return wanted / size


def _least_share(
    words: Words,
    subqueries: Sequence[QueryPart],
    queries: Sequence[LexicalQuery],
    likely: Sequence[tuple[Match, float]],
    enough: int,
) -> float:
    """Return the share of the query that ``enough`` texts contain; 0 if there are too few."""
    shares = [
        (best_share(match, words, subqueries, queries), texts)
        for match, texts in likely
        if match.bits & words.informative
    ]
    found = 0.0
    for share, texts in sorted(shares, reverse=True):
        # No more texts with the same words are examined.
        found += min(texts, MAX_SIMILAR)
        if found >= enough:
            return share
    return 0.0


def _of_any(words: Words, bits: Collection[int]) -> Q:
    """Return a filter for texts that contain one of these words."""
    return Q(terms__overlap=_forms(words, bits))


def _forms(words: Words, bits: Collection[int]) -> list[str]:
    looked_for = reduce(or_, bits, 0)
    return [form for form, own in words.of_terms().items() if own & looked_for]
