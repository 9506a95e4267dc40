"""Find the texts of a scope that contain words of a query, in one pass over the scope.

Each word of the query is a bit. PostgreSQL joins the scope's terms with the query's terms and
gives each text the bits of its words; texts with the same bits are grouped. A pass takes the same
time for every query, and no frequent word displaces a rare one. ``corpus_stats`` decides which
part of a large scope is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from django.db import connections
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from memoryproject.foundation.retrieval.query import QueryTerm, informative_terms
from memoryproject.foundation.retrieval.relevance import LexicalQuery
from memoryproject.foundation.retrieval.subqueries import QueryPart

# The number of bits in a bigint without its sign.
MAX_WORDS = 63
# Of texts with the same words only so many are examined, the shortest first.
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
FROM texts WHERE key IN (SELECT unnest(%s::uuid[]))
"""
_SIZE = """
WITH texts (key, length, terms) AS ({scope} LIMIT %s) SELECT count(*), avg(length) FROM texts
"""


@dataclass(frozen=True)
class Words:
    """The words of a query's texts: the bit of each word, by its alternatives.

    ``informative`` holds the bits of the words with content.
    """

    bits: Mapping[tuple[tuple[str, float], ...], int]
    informative: int

    def of_terms(self) -> dict[str, int]:
        """Return for each index term the bits of the words that it matches."""
        found: dict[str, int] = {}
        for alternatives, bit in self.bits.items():
            for form, _ in alternatives:
                found[form] = found.get(form, 0) | bit
        return found


@dataclass(frozen=True)
class Match:
    """Texts with the same words: ``bits``, their number, and the keys of some of them.

    There are no keys if the words don't distinguish texts.
    """

    bits: int
    texts: int
    keys: Sequence[UUID]


def words_of(subqueries: Sequence[QueryPart]) -> Words:
    """Return the distinct words of all texts, at most ``MAX_WORDS``.

    Words of the questions in a message come before its other words.
    """
    terms = [term for text in [*subqueries[1:], subqueries[0]] for term in text.terms]
    bits: dict[tuple[tuple[str, float], ...], int] = {}
    for term in terms:
        if term.alternatives not in bits and len(bits) < MAX_WORDS:
            bits[term.alternatives] = 1 << len(bits)
    known = [term for term in terms if term.alternatives in bits]
    informative = 0
    for term in informative_terms(known):
        informative |= bits[term.alternatives]
    return Words(bits, informative)


def known_terms(text: QueryPart, words: Words) -> list[QueryTerm]:
    """Return the text's terms that have a bit."""
    return [term for term in text.terms if term.alternatives in words.bits]


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
    words: Words, scope: QuerySet[Any], keys: Sequence[UUID]
) -> dict[UUID, tuple[int, list[str]]]:
    """Return the length of these texts in words, and the frequency of the query's terms in them."""
    if not keys:
        return {}
    inner, params = _compiled(scope)
    statement = _COUNTS.format(scope=inner)
    rows = _fetch(scope, statement, [*params, list(words.of_terms()), list(keys)])
    return {key: (length, terms) for key, length, terms in rows}


def size_of(scope: QuerySet[Any], *, most: int) -> tuple[int, float]:
    """Return the number of texts, at most ``most``, and their average length.

    ``scope`` is not sliced. Raises EmptyResultSet for a scope that can't contain anything.
    """
    inner, params = _compiled(scope)
    ((texts, length),) = _fetch(scope, _SIZE.format(scope=inner), [*params, most])
    return texts, float(length or 0.0)


def any_of(keys: Sequence[UUID]) -> RawSQL:
    """Return an ``__in`` value as a single parameter: hundreds cost Django milliseconds."""
    return RawSQL("SELECT unnest(%s::uuid[])", [list(keys)])  # noqa: S611 nothing is put into it


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
