"""Find the texts of a scope that contain words of a query, in one pass over the scope.

Each word of the query is a bit. PostgreSQL joins the scope's terms with the query's terms and
gives each text the bits of its words; texts with the same bits are grouped. A pass takes the same
time for every query, and no frequent word displaces a rare one. ``corpus_stats`` decides which
part of a large scope is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from django.db import connections
from django.db.models import QuerySet

from memoryproject.foundation.retrieval.query import LexicalQuery
from memoryproject.foundation.retrieval.subqueries import (
    MAX_SIMILAR,
    QueryPart,
    Words,
    known_terms,
)

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
FROM texts WHERE key IN (SELECT unnest(%s::uuid[]))
"""
_SIZE = """
WITH texts (key, length, terms) AS ({scope} LIMIT %s) SELECT count(*), avg(length) FROM texts
"""


@dataclass(frozen=True)
class Match:
    """Texts with the same words: ``bits``, their number, and the keys of some of them.

    There are no keys if the words don't distinguish texts.
    """

    bits: int
    texts: int
    keys: Sequence[UUID]


def matches_find(words: Words, scope: QuerySet[Any]) -> list[Match]:
    """Return the words that the scope's texts contain. Texts without any of them are left out."""
    bits = words.of_terms()
    if not bits:
        return []
    inner, params = _compiled(scope)
    statement = _MATCHES.format(scope=inner, most=MAX_SIMILAR)
    rows = _fetch(scope, statement, [*params, list(bits), list(bits.values()), words.informative])
    return [Match(found, texts, keys or ()) for found, texts, keys in rows]


def held_counts(words: Words, matches: Sequence[Match]) -> dict[int, int]:
    """Return for each word's bit the number of texts that contain it."""
    return {
        bit: sum(match.texts for match in matches if match.bits & bit)
        for bit in words.bits.values()
    }


def best_share(
    match: Match, words: Words, subqueries: Sequence[QueryPart], queries: Sequence[LexicalQuery]
) -> float:
    """Return the largest share that these words have of any text of the query."""
    return max(
        query.best_share(
            [bool(match.bits & words.bits[term.alternatives]) for term in known_terms(text, words)]
        )
        for query, text in zip(queries, subqueries, strict=True)
    )


def terms_fetch(
    terms: Sequence[str], scope: QuerySet[Any], keys: Sequence[UUID]
) -> dict[UUID, tuple[int, list[str]]]:
    """Return the length of these texts in words, and those of the terms that they hold."""
    if not keys:
        return {}
    inner, params = _compiled(scope)
    statement = _COUNTS.format(scope=inner)
    rows = _fetch(scope, statement, [*params, list(terms), list(keys)])
    return {key: (length, terms) for key, length, terms in rows}


def size_of(scope: QuerySet[Any], *, most: int) -> tuple[int, float]:
    """Return the number of texts, at most ``most``, and their average length.

    ``scope`` is not sliced. Raises EmptyResultSet for a scope that can't contain anything.
    """
    inner, params = _compiled(scope)
    ((texts, length),) = _fetch(scope, _SIZE.format(scope=inner), [*params, most])
    return texts, float(length or 0.0)


# A scope is compiled once for all its queries: that takes longer than to run most of them.
_scopes_in_sql: WeakKeyDictionary[QuerySet[Any], tuple[str, tuple[Any, ...]]] = WeakKeyDictionary()


def _compiled(scope: QuerySet[Any]) -> tuple[str, tuple[Any, ...]]:
    """Return the scope as SQL with three columns: key, length and terms."""
    known = _scopes_in_sql.get(scope)
    if known is None:
        ordered = scope if scope.query.is_sliced else scope.order_by()
        named = ordered.values_list("pk", "term_count", "terms")
        inner, params = named.query.get_compiler(scope.db).as_sql()
        known = _scopes_in_sql[scope] = inner, tuple(params)
    return known


def _fetch(scope: QuerySet[Any], statement: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connections[scope.db].cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchall()
