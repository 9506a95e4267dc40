"""The approximate index finds what is near, and is used where it should be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories_app.vector_search import (
    index_drop,
    index_name,
    nearest_by_index,
    nearest_exactly,
    nearest_keys,
)
from tests.embedding.clusters import MODEL, Clusters, Filled, Matrix, empty, fill, index

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

DIMENSIONS = 256
TOTAL = 9_500
SIZES = (10, 100, 1_000, 5_500)
SMALL = (10, 100, 1_000)
LARGE = (5_500, TOTAL)


@pytest.fixture(scope="module")
def filled(django_db_setup: None, django_db_blocker: Any) -> Iterator[Filled]:
    """Filled once; each test's own changes are undone."""
    with django_db_blocker.unblock():
        made = fill(SIZES, TOTAL, DIMENSIONS)
        index(DIMENSIONS)
    yield made
    with django_db_blocker.unblock():
        index_drop(model_id=MODEL)
        empty()


def search(filled: Filled, size: int, question: Matrix) -> list[UUID]:
    return nearest_keys(scope=filled.scope(size), model=MODEL, vector=question.tolist(), limit=100)


def share_found(filled: Filled, size: int, questions: Matrix) -> float:
    """The mean share of the truly nearest ten that a search finds."""
    shares = []
    for question in questions:
        truth = set(filled.nearest(size, question, 10))
        shares.append(len(truth & set(search(filled, size, question))) / len(truth))
    return sum(shares) / len(shares)


@pytest.mark.parametrize("size", [*SIZES, TOTAL])
def test_a_filter_never_costs_what_is_near(filled: Filled, size: int) -> None:
    questions = Clusters(DIMENSIONS, seed=7).beside(filled.vectors[filled.places[size]], 10)
    assert share_found(filled, size, questions) >= 0.98


@pytest.mark.parametrize("size", SMALL)
def test_a_small_scope_is_searched_without_loss(filled: Filled, size: int) -> None:
    """Asked about what only others see, and about what nobody sees."""
    asking = Clusters(DIMENSIONS, seed=7)
    for questions in (asking.beside(filled.vectors[-2_000:], 10), asking.of(10)):
        assert share_found(filled, size, questions) == 1.0


def plan(filled: Filled, size: int) -> str:
    """How PostgreSQL answers a search of this scope, by what it knows of the tables."""
    question = filled.vectors[filled.places[size][0]]
    with CaptureQueriesContext(connection) as queries:
        search(filled, size, question)
    (queries,) = [query["sql"] for query in queries if "<=>" in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + queries)
        return "\n".join(line for (line,) in cursor.fetchall())


@pytest.mark.parametrize("size", LARGE)
def test_large_scopes_are_searched_by_the_index(filled: Filled, size: int) -> None:
    found = plan(filled, size)

    assert f"Index Scan using {index_name(MODEL)}" in found
    assert "Seq Scan" not in found
    assert "Sort" not in found


@pytest.mark.parametrize("size", [10, 100])
def test_small_scopes_are_searched_exactly(filled: Filled, size: int) -> None:
    found = plan(filled, size)

    assert index_name(MODEL) not in found
    assert "Seq Scan" not in found


def test_exact_and_index_agree_on_what_is_near(filled: Filled) -> None:
    question = filled.vectors[100].tolist()
    exact = nearest_exactly(scope=filled.scope(TOTAL), model=MODEL, vector=question, limit=10)

    by_index = nearest_by_index(scope=filled.scope(TOTAL), model=MODEL, vector=question, limit=10)

    assert exact == by_index == filled.nearest(TOTAL, filled.vectors[100], 10)
