"""Find the texts of a scope whose vectors are nearest to the vectors of a query.

A small scope is searched exactly. A large one uses the model's approximate index, which visits
vectors from the nearest on, skips those outside the scope, and stops when it has enough. The
search is repeated exactly if the index stops early, or if all its results are far from the query:
an approximate index is reliable for near vectors only. So neither a filter nor an unusual query
costs results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connections, transaction
from django.db.models import Model, QuerySet
from django.db.models.functions import Least
from pgvector.django import CosineDistance

from memories_app.embedding_models.facade import cast_of
from memories_app.models import MemoryEmbedding

# Counted in numbers, not texts: the time of an exact search also grows with the dimensions.
MAX_NUMBERS_EXACTLY = 5_000 * 256
# The search width of the index; a larger one finds more and is slower. See docs/recall.md.
EF_SEARCH = 400
# After so many vectors outside the scope the index search stops, and the search is exact.
MAX_SCANNED = 20_000
# The nearest ten decide whether the results of the index are near.
VECTOR_CANDIDATES = 10

_SETTINGS = {
    # Not strict_order, which drops nearer results of later steps; all results are scored later.
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": str(EF_SEARCH),
    "hnsw.max_scan_tuples": str(MAX_SCANNED),
}

Vector = Sequence[float]


def nearest_keys(
    *,
    scope: QuerySet[Any],
    vectors: type[Model],
    key: str,
    model: str,
    asked: Sequence[Vector],
    limit: int,
    near: float = 0.5,
    sure: bool = True,
) -> list[UUID]:
    """Return the keys of the texts that are nearest to any of the vectors ``asked``.

    Return at least ``limit`` keys if the scope has so many with a vector of this model.

    vectors: the table of the scope's vectors; ``key`` is its foreign key to the scope. near:
    the cosine from which two texts are about the same topic, by the model's calibration.
    sure: if False, the search is never repeated exactly: only near results matter to the caller,
    and the index is reliable for them.
    """
    if not asked:
        return []
    if vectors is MemoryEmbedding and cast_of(len(asked[0])) is not None:
        most = MAX_NUMBERS_EXACTLY // len(asked[0])
        if scope.order_by().values("pk")[most : most + 1].exists():
            parts = _by_index(scope, key, model, asked, limit)
            if not sure or all(_is_sure(part, limit, near) for part in parts):
                return list(dict.fromkeys(found for part in parts for found, _ in part))
    return nearest_exactly(
        scope=scope, vectors=vectors, key=key, model=model, asked=asked, limit=limit
    )


def nearest_exactly(
    *,
    scope: QuerySet[Any],
    vectors: type[Model],
    key: str,
    model: str,
    asked: Sequence[Vector],
    limit: int,
) -> list[UUID]:
    """Return the same as ``nearest_keys`` by reading every vector in the scope."""
    distances = [CosineDistance("vector", list(vector)) for vector in asked]
    nearest = distances[0] if len(distances) == 1 else Least(*distances)
    rows = vectors._default_manager.filter(
        model=model, **{f"{key}__in": scope.order_by().values("pk")}
    )
    return list(rows.order_by(nearest).values_list(f"{key}_id", flat=True)[:limit])


def nearest_by_index(
    *, scope: QuerySet[Any], key: str, model: str, asked: Sequence[Vector], limit: int
) -> list[UUID]:
    """Return the results of the model's index without checking them."""
    parts = _by_index(scope, key, model, asked, limit)
    return [found for part in parts for found, _ in part]


def _is_sure(found: Sequence[tuple[UUID, float]], limit: int, near: float) -> bool:
    """Return whether the index found enough texts, and the nearest of them are near."""
    if len(found) < limit:
        return False
    cosines = sorted((1.0 - distance for _, distance in found), reverse=True)
    return cosines[min(VECTOR_CANDIDATES, limit) - 1] >= near


def _by_index(
    scope: QuerySet[Any], key: str, model: str, asked: Sequence[Vector], limit: int
) -> list[list[tuple[UUID, float]]]:
    """Return for each vector the found keys with their distance."""
    statement, params = index_search(scope=scope, key=key, model=model, asked=asked, limit=limit)
    # In one transaction, so that the settings end with it.
    with transaction.atomic(scope.db, savepoint=False), connections[scope.db].cursor() as cursor:
        cursor.execute(
            "SELECT set_config(name, value, true)"
            " FROM unnest(%s::text[], %s::text[]) AS wanted (name, value)",
            [list(_SETTINGS), list(_SETTINGS.values())],
        )
        cursor.execute(statement, params)
        rows = cursor.fetchall()
    parts: list[list[tuple[UUID, float]]] = [[] for _ in asked]
    for place, found, distance in rows:
        parts[place].append((found, distance))
    return parts


def index_search(
    *, scope: QuerySet[Any], key: str, model: str, asked: Sequence[Vector], limit: int
) -> tuple[str, list[Any]]:
    """Return the SQL that uses the model's index.

    Its rows are the vector's place in ``asked``, a key and its distance.
    """
    table = MemoryEmbedding._meta.db_table
    cast = cast_of(len(asked[0]))
    where, scope_params = _in_scope(scope, key)
    part = (
        f"(SELECT %s AS place, near.{key}_id, near.vector::{cast} <=> %s::{cast} AS distance"  # noqa: S608 names of our own
        f" FROM {table} near WHERE near.model = %s{where}"
        f" ORDER BY distance LIMIT %s)"
    )
    params: list[Any] = []
    for place, vector in enumerate(asked):
        params += [place, _literal(vector), model, *scope_params, limit]
    return " UNION ALL ".join([part] * len(asked)), params


def _in_scope(scope: QuerySet[Any], key: str) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL condition that a text is in the scope; empty for an unrestricted scope."""
    if not scope.query.where and not scope.query.is_sliced and not scope.query.combinator:
        return "", ()
    inner, params = scope.order_by().values("pk").query.get_compiler(scope.db).as_sql()
    return f" AND near.{key}_id IN ({inner})", tuple(params)


def _literal(vector: Vector) -> str:
    return "[" + ",".join(map(repr, map(float, vector))) + "]"
