"""How frequent the words of a question are in a scope, and which of its texts hold them.

A small scope is passed over as a whole. Of a large one a random sample is, which tells the
frequent words from the rare ones and how much of the question the best texts hold. Then all
texts are passed over that hold a rare word, or enough of the frequent ones to be among the
best; an index leads to them where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.db.models import Avg, Count, QuerySet

from memories_app.search.candidate_pruning import has_index, wanted_texts, ways_to_be_best
from memories_app.search.lexical_search import Match, Words, held_counts, known_terms, matches_find
from memoryproject.foundation.retrieval.relevance import LexicalQuery, Scope, weigh_query
from memoryproject.foundation.retrieval.subqueries import QueryPart


@dataclass(frozen=True)
class Effort:
    """How closely a scope is looked at. ``passed_over``: a scope of so many texts is passed over
    as a whole. ``sample``: so many texts of a larger one are looked at first. ``rare``: a word
    that fewer of those hold is counted in all texts; the frequency of another is estimated, with
    a standard error of at most 1 / sqrt(rare) of it. ``enough``: so many texts hold as much of
    the question as is asked of a text without a rare word."""

    passed_over: int = 10_000
    sample: int = 5_000
    rare: int = 100
    enough: int = 200


IN_USE = Effort()

# More texts than anybody has: then their ids aren't random, and they are counted.
MAX_TEXTS = 100_000_000


@dataclass(frozen=True)
class TermStats:
    """What a scope holds of a question: ``frequencies`` by the words' bits, and ``matches``,
    the texts that may be among the best by their words."""

    matches: Sequence[Match]
    frequencies: Mapping[int, int]
    texts: int
    average_length: float

    def frequencies_of(self, text: QueryPart, words: Words) -> list[int]:
        """One for each of the text's known terms."""
        terms = known_terms(text, words)
        return [self.frequencies[words.bits[term.alternatives]] for term in terms]

    def weigh(self, text: QueryPart, words: Words) -> LexicalQuery:
        """The text's known terms, weighed for the scope."""
        frequencies = self.frequencies_of(text, words)
        scope = Scope(self.texts, self.average_length, frequencies)
        return weigh_query(known_terms(text, words), scope)


def term_stats_find(
    asked: Sequence[QueryPart], words: Words, scope: QuerySet[Any], *, effort: Effort = IN_USE
) -> TermStats:
    """What the scope holds of the question's words. Raises EmptyResultSet for a scope that
    nothing can be in.

    The number of queries depends on whether the scope is large, and on nothing else.
    """
    figures = scope.order_by()[: effort.passed_over + 1].aggregate(
        texts=Count("pk"), length=Avg("term_count")
    )
    if figures["texts"] <= effort.passed_over:
        matches = matches_find(words, scope)
        length = float(figures["length"] or 0.0)
        return TermStats(matches, held_counts(words, matches), figures["texts"], length)
    with _by_indexes(scope.db):
        return _held_in_many(asked, words, scope, effort)


def _held_in_many(
    asked: Sequence[QueryPart], words: Words, scope: QuerySet[Any], effort: Effort
) -> TermStats:
    sampled = _sample(words, scope, effort.sample)
    by_sample = held_counts(words, sampled.matches)
    rare = {bit for bit, count in by_sample.items() if count < effort.rare}
    grown = sampled.texts / effort.sample
    about = {bit: round(count * grown) for bit, count in by_sample.items()}
    held = TermStats(sampled.matches, about, sampled.texts, sampled.average_length)
    queries = [held.weigh(text, words) for text in asked]
    likely = [(match, match.texts * grown) for match in sampled.matches]
    ways = ways_to_be_best(words, asked, queries, likely, enough=effort.enough)
    wanted = wanted_texts(words, rare, ways, indexed=has_index(scope))
    matches = matches_find(words, scope if wanted is None else scope.filter(wanted))
    counted = held_counts(words, matches)
    exactly = counted if wanted is None else {bit: counted[bit] for bit in rare}
    return TermStats(matches, about | exactly, sampled.texts, sampled.average_length)


def _sample(words: Words, scope: QuerySet[Any], size: int) -> TermStats:
    """The first texts by their ids, which are random, and what these say of the whole scope."""
    sample = scope.order_by("pk")[:size]
    lengths = dict(sample.values_list("pk", "term_count"))
    if not lengths:
        # All were deleted at this moment.
        return TermStats([], {}, 0, 0.0)
    return TermStats(
        matches=matches_find(words, sample),
        frequencies={},
        texts=_size(scope, list(lengths)),
        average_length=sum(lengths.values()) / len(lengths),
    )


def _size(scope: QuerySet[Any], lowest: Sequence[UUID]) -> int:
    """How many texts the scope holds, by how close its lowest ids lie. The standard error is
    1 / sqrt(len(lowest)). Where ids are not random the texts are counted."""
    places = [key.int / 2**128 for key in lowest]
    middle, last = places[len(places) // 2], places[-1]
    if last * MAX_TEXTS > len(places) and 0.4 < middle / last < 0.6:
        return round((len(places) - 1) / last)
    return scope.count()


@contextmanager
def _by_indexes(using: str) -> Iterator[None]:
    """No table is read from end to end, which PostgreSQL prefers for words that it takes for
    frequent. Within one transaction, so that the setting ends with it at the latest."""
    with transaction.atomic(using, savepoint=False), connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('enable_seqscan'), set_config('enable_seqscan', 'off', true)"
        )
        (before, _) = cursor.fetchone()
        yield
        cursor.execute("SELECT set_config('enable_seqscan', %s, true)", [before])
