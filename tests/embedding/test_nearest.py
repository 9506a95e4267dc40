"""The approximate index costs no results, and is used where it should be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories_app.models import MemoryEmbedding
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
LARGE = (5_500, TOTAL)
NEAR = 0.31


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


def search(filled: Filled, size: int, *queries: Matrix, **changes: Any) -> list[UUID]:
    values: dict[str, Any] = {
        "scope": filled.scope(size),
        "model": MODEL,
        "queries": [vector.tolist() for vector in queries],
        "limit": 100,
        "near": NEAR,
        **changes,
    }
    return nearest_keys(**values)


def share_found(filled: Filled, size: int, questions: Matrix) -> float:
    """The mean share of the truly nearest ten that a search finds."""
    shares = []
    for question in questions:
        truth = set(filled.nearest(size, question, 10))
        shares.append(len(truth & set(search(filled, size, question))) / len(truth))
    return sum(shares) / len(shares)


@pytest.mark.parametrize("size", [*SIZES, TOTAL])
def test_a_filter_never_costs_results(filled: Filled, size: int) -> None:
    """Asked about what is in the scope, about what only others see, and about neither."""
    asking = Clusters(DIMENSIONS, seed=7)
    others = filled.vectors[-2_000:]
    for questions in (
        asking.beside(filled.vectors[filled.places[size]], 10),
        asking.beside(others, 10),
        asking.of(10),
    ):
        assert share_found(filled, size, questions) >= 0.98


def plan(filled: Filled, size: int) -> str:
    """How PostgreSQL answers a search of this scope, by what it knows of the tables."""
    question = filled.vectors[filled.places[size][0]]
    with CaptureQueriesContext(connection) as queries:
        search(filled, size, question)
    (queries,) = [
        query["sql"]
        for query in queries
        if "<=>" in query["sql"] and not query["sql"].startswith("SELECT set_config")
    ]
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


def test_an_index_that_leads_nowhere_near_is_not_trusted(filled: Filled) -> None:
    """The hard case: all that is near is invisible, and the index loses its way."""
    far = Clusters(DIMENSIONS, seed=11).of(2_000)
    lost, questions = 0, far[:: len(far) // 20]
    for question in questions:
        truth = set(filled.nearest(TOTAL, question, 10))
        by_index = nearest_by_index(
            scope=filled.scope(TOTAL), model=MODEL, queries=[question], limit=100
        )
        lost += len(truth - set(by_index))
        assert truth <= set(search(filled, TOTAL, question))
    assert lost > 0, "or this test shows nothing"


def test_too_few_by_the_index_is_made_up_for_exactly(filled: Filled) -> None:
    """A scope that is large, but of whose texts hardly any has a vector of the model."""
    keys = filled.keys[:150]
    MemoryEmbedding.objects.exclude(memory_id__in=keys).delete()

    found = search(filled, TOTAL, filled.vectors[5_000], limit=150)

    assert set(found) == set(keys)


def test_exact_and_index_agree_on_what_is_near(filled: Filled) -> None:
    question = filled.vectors[100].tolist()
    exact = nearest_exactly(scope=filled.scope(TOTAL), model=MODEL, queries=[question], limit=10)

    by_index = nearest_by_index(
        scope=filled.scope(TOTAL), model=MODEL, queries=[question], limit=10
    )

    assert exact == by_index == filled.nearest(TOTAL, filled.vectors[100], 10)
