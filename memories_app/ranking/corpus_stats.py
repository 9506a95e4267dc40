"""Count how frequent the words of a query are in a scope, and find the texts with them.

A small scope is read completely. Of a large one a random sample is read first: it separates
frequent words from rare ones and shows how much of the query the best texts contain. Then the
texts are read that contain a rare word, or enough of the frequent ones to be among the best. An
index finds them, unless they are a large part of the scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from memories_app.ranking.candidate_pruning import routes_to_best, wanted_share, wanted_texts
from memories_app.ranking.lexical_search import (
    Match,
    held_counts,
    matches_find,
    size_of,
)
from memoryproject.foundation.retrieval.query import LexicalQuery, Scope, weigh_query
from memoryproject.foundation.retrieval.subqueries import QueryPart, Words, known_terms


@dataclass(frozen=True)
class Effort:
    """Limits of the work on a scope.

    ``passed_over``: a scope with at most so many texts is read completely. ``sample``: the size
    of the sample of a larger one. ``rare``: a word in fewer sampled texts is counted in all
    texts; the frequency of other words is estimated, with a relative standard error of at most
    1 / sqrt(rare). ``enough``: the number of texts whose share of the query is the threshold
    for texts without a rare word. ``mostly``: where so large a share of the texts may be among the
    best, all are read.
    """

    passed_over: int = 10_000
    sample: int = 5_000
    rare: int = 100
    enough: int = 200
    mostly: float = 0.3


IN_USE = Effort()

# A larger result means that ids aren't random; then the texts are counted.
MAX_TEXTS = 100_000_000


@dataclass(frozen=True)
class TermStats:
    """The statistics of a query in a scope.

    ``frequencies`` are keyed by the words' bits; ``matches`` are the texts that may be among
    the best by their words.
    """

    matches: Sequence[Match]
    frequencies: Mapping[int, int]
    texts: int
    average_length: float

    def frequencies_of(self, text: QueryPart, words: Words) -> list[int]:
        """Return the frequency of each known term of the text."""
        terms = known_terms(text, words)
        return [self.frequencies[words.bits[term.alternatives]] for term in terms]

    def weigh(self, text: QueryPart, words: Words) -> LexicalQuery:
        """Return the text's known terms with their weights in the scope."""
        frequencies = self.frequencies_of(text, words)
        scope = Scope(self.texts, self.average_length, frequencies)
        return weigh_query(known_terms(text, words), scope)


def term_stats_find(
    subqueries: Sequence[QueryPart], words: Words, scope: QuerySet[Any], *, effort: Effort = IN_USE
) -> TermStats:
    """Return the statistics of the query's words in the scope.

    The number of queries depends only on whether the scope is large. Raises EmptyResultSet for
    a scope that can't contain anything.
    """
    texts, length = size_of(scope, most=effort.passed_over + 1)
    if texts <= effort.passed_over:
        matches = matches_find(words, scope)
        return TermStats(matches, held_counts(words, matches), texts, length)
    return _held_in_many(subqueries, words, scope, effort)


def _held_in_many(
    subqueries: Sequence[QueryPart], words: Words, scope: QuerySet[Any], effort: Effort
) -> TermStats:
    sampled = _sample(words, scope, effort.sample)
    by_sample = held_counts(words, sampled.matches)
    rare = {bit for bit, count in by_sample.items() if count < effort.rare}
    grown = sampled.texts / effort.sample
    about = {bit: round(count * grown) for bit, count in by_sample.items()}
    held = TermStats(sampled.matches, about, sampled.texts, sampled.average_length)
    queries = [held.weigh(text, words) for text in subqueries]
    likely = [(match, match.texts * grown) for match in sampled.matches]
    routes = routes_to_best(words, subqueries, queries, likely, enough=effort.enough)
    # An index saves nothing where most texts are wanted, and comparing each with many words costs
    # more than to count the words of all.
    if wanted_share(sampled.matches, rare, routes, effort.sample) < effort.mostly:
        scope = scope.filter(wanted_texts(words, rare, routes))
    matches = matches_find(words, scope)
    counted = held_counts(words, matches)
    exactly = {bit: counted[bit] for bit in rare}
    return TermStats(matches, about | exactly, sampled.texts, sampled.average_length)


def _sample(words: Words, scope: QuerySet[Any], size: int) -> TermStats:
    """Read the texts with the lowest ids, which are random, and extrapolate to the scope."""
    sample = scope.order_by("pk")[:size]
    lengths = dict(sample.values_list("pk", "term_count"))
    if not lengths:
        # All texts were deleted at the same time.
        return TermStats([], {}, 0, 0.0)
    return TermStats(
        matches=matches_find(words, sample),
        frequencies={},
        texts=_size(scope, list(lengths)),
        average_length=sum(lengths.values()) / len(lengths),
    )


def _size(scope: QuerySet[Any], lowest: Sequence[UUID]) -> int:
    """Estimate the number of texts in the scope from the distance of its lowest ids.

    The relative standard error is 1 / sqrt(len(lowest)). If ids are not random, count the texts.
    """
    places = [key.int / 2**128 for key in lowest]
    middle, last = places[len(places) // 2], places[-1]
    if last * MAX_TEXTS > len(places) and 0.4 < middle / last < 0.6:
        return round((len(places) - 1) / last)
    return scope.count()
