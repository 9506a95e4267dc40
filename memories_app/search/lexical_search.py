"""Finds the texts of a scope that hold words of a question, in one pass over the scope.

Each word of the question is a bit. PostgreSQL joins the scope's terms with the question's and
gives every text the bits of the words that it holds; texts with the same bits are told together.
A pass takes the same time whatever is asked, and no frequent word crowds out a rare one. What
of a large scope is passed over is decided in ``frequencies``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from memoryproject.foundation.retrieval.relevance import LexicalQuery
from memoryproject.foundation.retrieval.subqueries import QueryPart
from memoryproject.foundation.text.query import QueryTerm, informative_terms

# As many as a bigint has beside its sign.
MAX_WORDS = 63
# Of texts that hold the same words so many are looked at closely, the shortest first.
MAX_SIMILAR = 100

_MATCHES = """
WITH texts (key, length, terms) AS ({scope}),
asked AS (SELECT unnest(%s::text[]) AS term, unnest(%s::bigint[]) AS bit),
held AS (
    SELECT words.key, words.length, bit_or(asked.bit) AS bits
    FROM (SELECT key, length, unnest(terms) AS term FROM texts) AS words
    JOIN asked USING (term)
    GROUP BY words.key, words.length
)
SELECT bits, count(*),
       (array_agg(key ORDER BY length, key) FILTER (WHERE bits & %s <> 0))[1:{most}]
FROM held
GROUP BY bits
"""
_COUNTS = """
WITH texts (key, length, terms) AS ({scope})
SELECT key, length, ARRAY(SELECT term FROM unnest(terms) AS term WHERE term = ANY(%s))
FROM texts
"""


@dataclass(frozen=True)
class Words:
    """The words of a question's texts: the bit of each, by its alternatives."""

    bits: Mapping[tuple[tuple[str, float], ...], int]
    telling: int

    def of_terms(self) -> dict[str, int]:
        """The bits of all words that an index term counts for."""
        found: dict[str, int] = {}
        for alternatives, bit in self.bits.items():
            for form, _ in alternatives:
                found[form] = found.get(form, 0) | bit
        return found


@dataclass(frozen=True)
class Match:
    """Texts that hold the same words: ``bits``, how many they are, and keys of some. No keys
    where the words tell nothing."""

    bits: int
    texts: int
    keys: Sequence[UUID]


def words_of(asked: Sequence[QueryPart]) -> Words:
    """The distinct words of all texts, at most ``MAX_WORDS``: those of the questions in a
    message before those of the rest of it."""
    terms = [term for text in [*asked[1:], asked[0]] for term in text.terms]
    bits: dict[tuple[tuple[str, float], ...], int] = {}
    for term in terms:
        if term.alternatives not in bits and len(bits) < MAX_WORDS:
            bits[term.alternatives] = 1 << len(bits)
    known = [term for term in terms if term.alternatives in bits]
    telling = 0
    for term in informative_terms(known):
        telling |= bits[term.alternatives]
    return Words(bits, telling)


def known_terms(text: QueryPart, words: Words) -> list[QueryTerm]:
    """The text's terms that have a bit."""
    return [term for term in text.terms if term.alternatives in words.bits]


def matches_find(words: Words, scope: QuerySet[Any]) -> list[Match]:
    """Which words the scope's texts hold. Texts with none of them are not told of."""
    bits = words.of_terms()
    if not bits:
        return []
    inner, params = _compiled(scope)
    statement = _MATCHES.format(scope=inner, most=MAX_SIMILAR)
    rows = _fetch(scope, statement, [*params, list(bits), list(bits.values()), words.telling])
    return [Match(found, texts, keys or ()) for found, texts, keys in rows]


def held_counts(words: Words, matches: Sequence[Match]) -> dict[int, int]:
    """How many of the texts hold each word, by its bit."""
    return {
        bit: sum(match.texts for match in matches if match.bits & bit)
        for bit in words.bits.values()
    }


def best_share(
    match: Match, words: Words, asked: Sequence[QueryPart], queries: Sequence[LexicalQuery]
) -> float:
    """The largest share of any text of the question that these words are."""
    return max(
        query.best_share(
            [bool(match.bits & words.bits[term.alternatives]) for term in known_terms(text, words)]
        )
        for query, text in zip(queries, asked, strict=True)
    )


def terms_fetch(
    words: Words, scope: QuerySet[Any], keys: Sequence[UUID]
) -> dict[UUID, tuple[int, list[str]]]:
    """Of these texts the length in words, and those terms that the question asks for, as often
    as they occur."""
    if not keys:
        return {}
    inner, params = _compiled(scope.filter(pk__in=any_of(keys)))
    rows = _fetch(scope, _COUNTS.format(scope=inner), [*params, list(words.of_terms())])
    return {key: (length, terms) for key, length, terms in rows}


def any_of(keys: Sequence[UUID]) -> RawSQL:
    """The keys for an ``__in`` filter, as one parameter: hundreds cost Django milliseconds."""
    return RawSQL("SELECT unnest(%s::uuid[])", [list(keys)])  # noqa: S611 nothing is put into it


def _compiled(scope: QuerySet[Any]) -> tuple[str, tuple[Any, ...]]:
    """The scope as SQL with three columns: key, length and terms."""
    ordered = scope if scope.query.is_sliced else scope.order_by()
    named = ordered.values_list("pk", "term_count", "terms")
    inner, params = named.query.get_compiler(scope.db).as_sql()
    return inner, tuple(params)


def _fetch(scope: QuerySet[Any], statement: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connections[scope.db].cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchall()
