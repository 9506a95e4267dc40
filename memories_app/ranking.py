"""Retrieve from PostgreSQL the texts that may be relevant to a question, and rank them.

A set of texts is read in two statements. The first reads its newest texts: a set of few texts is
complete with them, and of a larger one they show how frequent the words of the question are. The
second adds the texts that hold rare words of the question, or two of its words, and those with the
nearest vectors. Only this choice is approximate. Filters and rights are in the queryset, so they
never cost results.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import Model, QuerySet
from numpy.typing import NDArray

from memories_app.vector_search import cast_of
from memoryproject.foundation.integrations.embedders.base import (
    Calibration,
    Embedder,
    EmbedderError,
    FactQueries,
    embed_covered,
    embed_queries,
)
from memoryproject.foundation.retrieval.query import QueryTerm, is_informative
from memoryproject.foundation.retrieval.relevance import (
    MOSTLY_USUAL,
    PART_WORTH,
    Floats,
    chances,
    frequencies,
    weigh_words,
)
from memoryproject.foundation.retrieval.subqueries import QueryPart

Vector: TypeAlias = Sequence[float]

# The number of texts in the sample. A set of no more texts is read completely.
SAMPLE = 128
# The number of candidates by the vector, by each word or pair of words, and by all words.
NEAREST = 100
HOLDING = 100
MAX_HOLDING = 300
# A word in more texts of the sample chooses candidates only together with another word.
RARE = 3
# So many words choose candidates, and pairs of so many.
MAX_CHOOSING = 12
MAX_PAIRED = 5
# A set of no more texts is searched exactly. So is a larger one that has few of all vectors: an
# index would read past those of others.
EXACTLY = 5_000
MIN_SHARE = 0.05
# Characters of each text that are read to compare it with others.
COMPARED = 500

# HNSW goes on until it has found enough texts that the filters let pass. Compiling a statement
# takes longer than to run it.
_SETTINGS = (
    "SET LOCAL hnsw.ef_search = 200; SET LOCAL hnsw.iterative_scan = relaxed_order;"
    " SET LOCAL jit = off; "
)
# PostgreSQL takes a few rows that a statement makes for many, and would read whole tables.
_BY_INDEXES = (
    "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;"
    " SET LOCAL enable_seqscan = off; "
)


@dataclass(frozen=True)
class Texts:
    """A set of texts: those of a queryset whose rows have ``terms`` and ``content``.

    newest: the order in which an index reads the newest ones first. vectors: the model that holds
    their vectors, by the key ``owner``.
    """

    rows: QuerySet[Any]
    newest: Sequence[str]
    vectors: type[Model]
    owner: str


@dataclass(frozen=True)
class Candidates:
    """Texts that may be relevant, in rows: the first ``sampled`` of them are the sample.

    ``terms``: the index terms of the question that each holds. ``cosines``: one column for each
    vector of the question, NaN without one. ``contents``: how each begins.
    """

    ids: Sequence[UUID]
    terms: Sequence[Collection[str]]
    cosines: Floats
    contents: Sequence[str]
    sampled: int

    def about(self, name: Sequence[Sequence[str]]) -> "Candidates":
        """Return the candidates as texts about somebody, whose name is not in them.

        ``name``: the forms of each word of it. They are no copies of what others said.
        """
        terms = [{*held, *chain(*name)} for held in self.terms]
        contents = [f"{name} {content}" for content in self.contents]
        return replace(self, terms=terms, contents=contents, sampled=0)

    def holds_all(self, row: int, words: Sequence[Sequence[str]]) -> bool:
        """Return whether a text holds each of the words, given by their forms."""
        return all(not set(forms).isdisjoint(self.terms[row]) for forms in words)


def joined(parts: Sequence[Candidates]) -> tuple[Candidates, NDArray[np.bool_]]:
    """Return the candidates of several sets as one, and which of them are samples."""
    cosines = [part.cosines for part in parts]
    together = Candidates(
        [key for part in parts for key in part.ids],
        [terms for part in parts for terms in part.terms],
        np.concatenate(cosines) if cosines else np.zeros((0, 1)),
        [content for part in parts for content in part.contents],
        sum(part.sampled for part in parts),
    )
    sampled = [np.arange(len(part.ids)) < part.sampled for part in parts]
    return together, np.concatenate(sampled) if sampled else np.zeros(0, bool)


@dataclass(frozen=True)
class Sample:
    """The newest texts of a set, with the index terms of the question that each holds.

    ``by_index``: whether the nearest vectors of the set are found by their index.
    """

    ids: Sequence[UUID]
    terms: Sequence[Collection[str]]
    by_index: bool = False

    @property
    def complete(self) -> bool:
        """Return whether the set holds no other texts."""
        return len(self.ids) < SAMPLE


def samples_read(
    sets: Sequence[Texts], terms: Sequence[QueryTerm], marks: Sequence[str] = ()
) -> list[Sample]:
    """Read the newest texts of each set, together. ``marks``: further index terms to look for."""
    statements, params = [], []
    for number, texts in enumerate(sets):
        if compiled := _compiled(texts.rows.order_by(*texts.newest)[:SAMPLE]):
            statements.append(
                f"SELECT {number}, row_number() OVER (), id, {held_terms('texts.terms')}"
                f" FROM ({compiled[0]}) AS texts (id, terms, content)"
            )
            params += [[*_forms(terms), *marks], *compiled[1]]
    rows = _fetch(sets[0].rows.db, " UNION ALL ".join(statements), params) if statements else []
    samples = []
    for number, texts in enumerate(sets):
        own = sorted(row[1:] for row in rows if row[0] == number)
        is_large = len(own) == SAMPLE and _needs_index(texts)
        samples.append(Sample([row[1] for row in own], [row[2] for row in own], is_large))
    return samples


def _needs_index(texts: Texts) -> bool:
    """Return whether a set is large, and has enough of all vectors for their index.

    By PostgreSQL's estimates: counting a large set would take longer than to search it.
    """
    scope, params = _compiled(texts.rows.order_by()) or ("", ())
    with connections[texts.rows.db].cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {scope}", params)
        (plan,) = cursor.fetchone()
        number = plan[0]["Plan"]["Plan Rows"]
        if number <= EXACTLY:
            return False
        table = texts.vectors._meta.db_table
        cursor.execute("SELECT reltuples FROM pg_class WHERE oid = %s::regclass", [table])
        (vectors,) = cursor.fetchone()
    return bool(number >= vectors * MIN_SHARE)


def held_terms(column: str) -> str:
    """Return the SQL of the terms in a column that are among those of one parameter."""
    return f"ARRAY(SELECT term FROM unnest({column}) AS term WHERE term = ANY(%s))"


def candidates_read(
    texts: Texts,
    sample: Sample,
    terms: Sequence[QueryTerm],
    vectors: Sequence[Vector | None],
    *,
    model: str,
) -> Candidates:
    """Read the candidates of a question: the sample, and of a larger set the likely texts.

    vectors: of the question's parts; None where there is none.
    """
    known = [vector for vector in vectors if vector is not None]
    compiled = _compiled(texts.rows.order_by())
    if compiled is None or not sample.ids:
        return Candidates([], [], np.zeros((0, len(vectors))), [], 0)
    scope, params = compiled
    chosen = ["SELECT unnest(%s::uuid[]) AS id"]
    given: list[Any] = [list(sample.ids)]
    if not sample.complete:
        held = []
        for forms in choosing_words(terms, sample.terms):
            holds = " AND ".join("terms && %s" for _ in forms)
            held.append(
                f"(SELECT id FROM ({scope}) AS texts (id, terms, content)"
                f" WHERE {holds} LIMIT {HOLDING})"
            )
            given += [*params, *forms]
        if held:
            # Those that hold most of the words come first: reading is what takes longest.
            chosen.append(
                f"(SELECT id FROM ({' UNION ALL '.join(held)}) AS held"
                f" GROUP BY id ORDER BY count(*) DESC, id LIMIT {MAX_HOLDING})"
            )
        for vector in known:
            statement, values = _nearest(texts, vector, model, by_index=sample.by_index)
            chosen.append(statement)
            given += values
    distances = "".join(", 1 - (near.vector <=> %s::vector)" for _ in known)
    table = texts.vectors._meta.db_table
    statement = (
        f"WITH chosen AS MATERIALIZED ({' UNION '.join(chosen)})"
        f" SELECT texts.id, {held_terms('texts.terms')}, left(content, {COMPARED}){distances}"
        f" FROM chosen JOIN ({scope}) AS texts (id, terms, content) USING (id)"
        f" LEFT JOIN {table} near ON near.{texts.owner}_id = texts.id AND near.model = %s"
    )
    literals = [vector_literal(vector) for vector in known]
    rows = _fetch(texts.rows.db, statement, [*given, _forms(terms), *literals, *params, model])
    return _candidates_of(rows, sample, vectors)


def _candidates_of(
    rows: list[tuple[Any, ...]], sample: Sample, vectors: Sequence[Vector | None]
) -> Candidates:
    """Return what was read as candidates: id, terms, content, and a cosine for each vector."""
    place = {key: number for number, key in enumerate(sample.ids)}
    # One order whatever the plan: the sample first.
    rows.sort(key=lambda row: (place.get(row[0], len(place)), row[0]))
    cosines = np.full((len(rows), len(vectors)), np.nan)
    columns = [number for number, vector in enumerate(vectors) if vector is not None]
    for number, row in enumerate(rows):
        cosines[number, columns] = [np.nan if value is None else value for value in row[3:]]
    return Candidates(
        [row[0] for row in rows],
        [row[1] for row in rows],
        cosines.round(6),
        [row[2] for row in rows],
        sum(row[0] in place for row in rows),
    )


def choosing_words(
    terms: Sequence[QueryTerm], sample: Sequence[Collection[str]]
) -> list[list[list[str]]]:
    """Return the words by which candidates are chosen: the forms of one word, or of each of two."""
    counts = frequencies(terms, sample)
    ranked = sorted(
        (count, place) for place, count in enumerate(counts) if is_informative(terms[place])
    )[:MAX_CHOOSING]
    forms = [list(terms[place].forms) for _, place in ranked]
    rare = [[own] for own, (count, _) in zip(forms, ranked, strict=True) if count <= RARE]
    pairs = [list(pair) for pair in combinations(forms[:MAX_PAIRED], 2)]
    return rare + pairs or [[own] for own in forms[:1]]


def _nearest(texts: Texts, vector: Vector, model: str, *, by_index: bool) -> tuple[str, list[Any]]:
    """Return the statement of the texts with the nearest vectors."""
    table = texts.vectors._meta.db_table
    cast = cast_of(len(vector), texts.vectors) if by_index else None
    # Without the cast of an index the search is exact.
    near = "near.vector" if cast is None else f"near.vector::{cast}"
    compiled = _compiled(texts.rows.order_by())
    scope, params = compiled if compiled else ("", ())
    return (
        f"(SELECT near.{texts.owner}_id FROM {table} near"
        f" JOIN ({scope}) AS texts (id, terms, content) ON texts.id = near.{texts.owner}_id"
        f" WHERE near.model = %s ORDER BY {near} <=> %s::{cast or 'vector'} LIMIT {NEAREST})",
        [*params, model, vector_literal(vector)],
    )


def _compiled(rows: QuerySet[Any]) -> tuple[str, tuple[Any, ...]] | None:
    """Return the rows as SQL with the columns id, terms and content; None if there can't be any."""
    try:
        statement, params = (
            rows.values_list("pk", "terms", "content").query.get_compiler(rows.db).as_sql()
        )
    except EmptyResultSet:
        return None
    return statement, tuple(params)


def _forms(terms: Iterable[QueryTerm]) -> list[str]:
    return list({form for term in terms for form in term.forms})


def vector_literal(vector: Vector) -> str:
    """Return the vector as PostgreSQL reads it."""
    return "[" + ",".join(map(repr, map(float, vector))) + "]"


def fetch_by_ids(db: str, statement: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run a statement that joins a few rows with large tables, and return its rows."""
    return _fetch(db, _BY_INDEXES + statement, params)


def _fetch(db: str, statement: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connections[db].cursor() as cursor:
        cursor.execute(_SETTINGS + statement, params)
        while cursor.description is None:
            cursor.nextset()
        return cursor.fetchall()


# Rank candidates against a question: memories here, and the seeds of messages.

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Question:
    """A message as it is searched for: its parts, each with its vector, or None.

    ``usual``: how near each part is to the facts of any business; empty where that isn't known.
    """

    parts: Sequence[QueryPart]
    vectors: Sequence[Vector | None]
    model: str
    calibration: Calibration
    usual: Sequence[float] = ()

    def of_parts(self, which: slice) -> "Question":
        """Return the question of some of the parts."""
        parts, vectors, usual = self.parts[which], self.vectors[which], self.usual[which]
        return replace(self, parts=parts, vectors=vectors, usual=usual)

    def forms_of(self, words: Collection[str]) -> list[tuple[str, ...]]:
        """Return the index terms of each of these words of the question."""
        return [term.forms for term in self.terms if term.word in words]

    @property
    def terms(self) -> list[QueryTerm]:
        """Return the distinct words of all parts."""
        return distinct_terms(self.parts)


def distinct_terms(parts: Sequence[QueryPart]) -> list[QueryTerm]:
    """Return the distinct words of all parts of a message."""
    return list({term.forms: term for part in parts for term in part.terms}.values())


def prepare_question(
    parts: Sequence[QueryPart],
    topics: Sequence[str],
    embedder: Embedder,
    for_facts: FactQueries | None = None,
) -> tuple[Question, bool]:
    """Return the question with its vectors, and whether the embedder succeeded.

    The embedder is called once, with distinct texts. for_facts: its own way to ask for facts.
    """
    distinct = list(dict.fromkeys(topics))
    embed = for_facts.embed if for_facts else partial(embed_queries, embedder)
    made: dict[str, Vector | None] = {}
    worked = True
    try:
        made = dict(zip(distinct, embed_covered(embedder, distinct, embed), strict=True))
    except EmbedderError as error:
        logger.error("The query could not be embedded, words decide alone: %s", error)
        worked = False
    vectors = [made.get(topic) for topic in topics]
    calibration = (for_facts or embedder).calibration
    usual = [for_facts.usual(vector) if vector else 0.0 for vector in vectors] if for_facts else []
    return Question(parts, vectors, embedder.model_id, calibration, usual), worked


def rank_sets(question: Question, found: Sequence[Candidates]) -> tuple[Candidates, Floats]:
    """Return the candidates of several sets as one, with the relevance of each."""
    candidates, sampled = joined(found)
    return candidates, rank(question, candidates, sampled)


def rank(question: Question, candidates: Candidates, sampled: NDArray[np.bool_]) -> Floats:
    """Return the relevance of each candidate, in [0, 1]: to the part that it answers best.

    Copies of a text are compared with the others once, so that they don't silence each other.
    sampled: the candidates that are a sample of the scope.
    """
    scores = np.zeros(len(candidates.ids))
    if not len(scores):
        return scores
    sample = [candidates.terms[row] for row in np.flatnonzero(sampled).tolist()]
    first, copy_of = _copies(candidates.contents)
    for place, part in enumerate(question.parts):
        words = weigh_words(part.terms, sample)
        cosines = question.calibration.scaled(candidates.cosines[:, place])
        held = words.held_by(candidates.terms)
        usual = question.usual[place] if question.usual else MOSTLY_USUAL
        own = chances(cosines[first], held[first], words, usual=usual)[copy_of]
        worth = PART_WORTH if place else 1.0
        scores = np.maximum(scores, worth * own)
    return scores


def _copies(contents: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row of each distinct text, and for each row the place of its text there."""
    texts: dict[str, int] = {}
    first: list[int] = []
    places = []
    for row, content in enumerate(contents):
        # Comparing words would take longer than all else; copies are spelt alike.
        key = content.casefold().rstrip(" .!")
        if key not in texts:
            texts[key] = len(first)
            first.append(row)
        places.append(texts[key])
    return np.array(first, np.int64), np.array(places, np.int64)
