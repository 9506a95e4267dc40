"""How frequent the words of a question are in a scope, and which of its texts hold them.

A small scope is passed over as a whole. Of a large one a random sample is, which tells the
frequent words from the rare ones and how much of the question the best texts hold. Then all
texts are passed over that hold a rare word, or enough of the frequent ones to be among the
best; an index leads to them where there is one. That no text with less could be among the best
is what "MaxScore" uses (Turtle and Flood, "Query evaluation: strategies and optimizations",
1995); here a sample says how good the best are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import and_, or_
from typing import Any
from uuid import UUID

from django.contrib.postgres.indexes import GinIndex
from django.db import connections, transaction
from django.db.models import Avg, Count, Q, QuerySet

from memories_app.words import (
    MOST_ALIKE,
    Match,
    Words,
    best_share,
    held_counts,
    known_terms,
    matches_find,
)
from memoryproject.lib.asked import Asked
from memoryproject.lib.relevance import LexicalQuery, Scope, weigh_query
from memoryproject.lib.text.query import QueryTerm

# A scope of so many texts is passed over as a whole.
MOST_EXACTLY = 10_000
SAMPLE = 5_000
# A word that fewer texts of the sample hold is counted in all texts. The frequency of another
# is estimated, with a standard error of at most a tenth of it: 1 / sqrt(RARE).
RARE = 100
# So many texts hold as much of the question as is asked of a text without a rare word.
ENOUGH = 200
# With more forms of words a text without an index is not compared before a pass.
MOST_COMPARED = 30
# More texts than anybody has: then their ids aren't random, and they are counted.
MOST_TEXTS = 100_000_000


@dataclass(frozen=True)
class Held:
    """What a scope holds of a question: ``frequencies`` by the words' bits, and ``matches``,
    the texts that may be among the best by their words."""

    matches: Sequence[Match]
    frequencies: Mapping[int, int]
    texts: int
    average_length: float

    def frequencies_of(self, text: Asked, words: Words) -> list[int]:
        """One for each of the text's known terms."""
        terms = known_terms(text, words)
        return [self.frequencies[words.bits[term.alternatives]] for term in terms]

    def weigh(self, text: Asked, words: Words) -> LexicalQuery:
        """The text's known terms, weighed for the scope."""
        frequencies = self.frequencies_of(text, words)
        scope = Scope(self.texts, self.average_length, frequencies)
        return weigh_query(known_terms(text, words), scope)


def held_find(asked: Sequence[Asked], words: Words, scope: QuerySet[Any]) -> Held:
    """What the scope holds of the question's words. Raises EmptyResultSet for a scope that
    nothing can be in.

    The number of queries depends on whether the scope is large, and on nothing else.
    """
    figures = scope.order_by()[: MOST_EXACTLY + 1].aggregate(
        texts=Count("pk"), length=Avg("term_count")
    )
    if figures["texts"] <= MOST_EXACTLY:
        matches = matches_find(words, scope)
        length = float(figures["length"] or 0.0)
        return Held(matches, held_counts(words, matches), figures["texts"], length)
    with _by_indexes(scope.db):
        return _held_in_many(asked, words, scope)


def _held_in_many(asked: Sequence[Asked], words: Words, scope: QuerySet[Any]) -> Held:
    sampled = _sample(words, scope)
    by_sample = held_counts(words, sampled.matches)
    rare = {bit for bit, count in by_sample.items() if count < RARE}
    grown = sampled.texts / SAMPLE
    about = {bit: round(count * grown) for bit, count in by_sample.items()}
    held = Held(sampled.matches, about, sampled.texts, sampled.average_length)
    queries = [held.weigh(text, words) for text in asked]
    least = _least_share(held, words, asked, queries, grown)
    ways = [
        _Way.to(least, known_terms(text, words), query, words)
        for text, query in zip(asked, queries, strict=True)
    ]
    wanted = _wanted(words, rare, [way for way in ways if way], indexed=_has_index(scope))
    matches = matches_find(words, scope if wanted is None else scope.filter(wanted))
    counted = held_counts(words, matches)
    exactly = counted if wanted is None else {bit: counted[bit] for bit in rare}
    return Held(matches, about | exactly, sampled.texts, sampled.average_length)


def _sample(words: Words, scope: QuerySet[Any]) -> Held:
    """The first texts by their ids, which are random, and what these say of the whole scope."""
    sample = scope.order_by("pk")[:SAMPLE]
    lengths = dict(sample.values_list("pk", "term_count"))
    return Held(
        matches=matches_find(words, sample),
        frequencies={},
        texts=_size(scope, list(lengths)),
        average_length=sum(lengths.values()) / len(lengths),
    )


def _size(scope: QuerySet[Any], lowest: Sequence[UUID]) -> int:
    """How many texts the scope holds, by how close its lowest ids lie. The standard error is
    1 / sqrt(SAMPLE). Where ids are not random the texts are counted."""
    places = [key.int / 2**128 for key in lowest]
    middle, last = places[len(places) // 2], places[-1]
    if last * MOST_TEXTS > len(places) and 0.4 < middle / last < 0.6:
        return round((len(places) - 1) / last)
    return scope.count()


def _least_share(
    sampled: Held,
    words: Words,
    asked: Sequence[Asked],
    queries: Sequence[LexicalQuery],
    grown: float,
) -> float:
    """The share of the question that ``ENOUGH`` texts of the scope hold, by the sample; 0 where
    there aren't so many."""
    telling = [match for match in sampled.matches if match.bits & words.telling]
    shares = [(best_share(match, words, asked, queries), match.texts) for match in telling]
    found = 0.0
    for share, texts in sorted(shares, reverse=True):
        # Of texts that hold the same words no more are looked at.
        found += min(texts * grown, MOST_ALIKE)
        if found >= ENOUGH:
            return share
    return 0.0


@dataclass(frozen=True)
class _Way:
    """How a text can hold enough of a question: all words of ``must``, and one of ``one_of``."""

    must: list[int]
    one_of: set[int]

    @classmethod
    def to(
        cls, least: float, terms: Sequence[QueryTerm], query: LexicalQuery, words: Words
    ) -> _Way | None:
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


def _wanted(words: Words, rare: set[int], ways: Sequence[_Way], *, indexed: bool) -> Q | None:
    """The texts that hold a rare word, or enough of the frequent ones in one of the ways. None
    for a pass over all texts."""
    if not indexed:
        # Each text is looked at, and comparing it once with a few words is quicker than a pass.
        any_of = rare.union(*(way.one_of for way in ways))
        return _of_any(words, any_of) if len(_forms(words, any_of)) <= MOST_COMPARED else None
    wanted = _of_any(words, rare)
    for way in ways:
        must = [_of_any(words, {bit}) for bit in way.must]
        wanted |= reduce(and_, must, _of_any(words, way.one_of))
    return wanted


def _has_index(scope: QuerySet[Any]) -> bool:
    """Whether an index leads to the texts that hold a term."""
    indexes = scope.model._meta.indexes
    return any(isinstance(index, GinIndex) and index.fields == ["terms"] for index in indexes)


def _of_any(words: Words, bits: Collection[int]) -> Q:
    """The texts that hold one of these words."""
    return Q(terms__overlap=_forms(words, bits))


def _forms(words: Words, bits: Collection[int]) -> list[str]:
    looked_for = reduce(or_, bits, 0)
    return [form for form, own in words.of_terms().items() if own & looked_for]


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
