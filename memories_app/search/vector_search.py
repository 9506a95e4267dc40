"""The texts of a scope whose vectors are nearest to those of a question.

A small scope is searched exactly. A large one by the model's approximate index, which walks
from the nearest vector on and leaves out what is not in the scope, until it has enough. Where
it gives up before, and where all that it found is far from the question, the search is exact
after all: such an index is right about what is near, and loses its way where nothing is. So
neither a filter nor an odd question costs results.
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

# Numbers, not texts: the time of an exact search grows with the length of the vectors, too.
MAX_NUMBERS_EXACTLY = 5_000 * 256
# How far the index looks around; more finds more and takes longer. See docs/recall.md.
EF_SEARCH = 400
# So many vectors are looked at in vain at most before the search is exact.
MAX_SCANNED = 20_000
# The nearest ten decide whether the index found something near.
VECTOR_CANDIDATES = 10

_SETTINGS = {
    # Not strict_order, which drops what a later step finds too near; all are scored afterwards.
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
    """The keys of the texts that are nearest to any of the vectors ``asked``, at least
    ``limit`` of them where the scope has so many with a vector of this model.

    vectors: the table of the scope's vectors; ``key`` is its foreign key to the scope. near:
    a cosine from which two texts are about one matter, by the model's calibration.
    sure: False where only what is near is of interest, about which the index is right.
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
    """As ``nearest_keys``, by looking at every vector in the scope."""
    distances = [CosineDistance("vector", list(vector)) for vector in asked]
    nearest = distances[0] if len(distances) == 1 else Least(*distances)
    rows = vectors._default_manager.filter(
        model=model, **{f"{key}__in": scope.order_by().values("pk")}
    )
    return list(rows.order_by(nearest).values_list(f"{key}_id", flat=True)[:limit])


def nearest_by_index(
    *, scope: QuerySet[Any], key: str, model: str, asked: Sequence[Vector], limit: int
) -> list[UUID]:
    """What the model's index leads to, be it right or not."""
    parts = _by_index(scope, key, model, asked, limit)
    return [found for part in parts for found, _ in part]


def _is_sure(found: Sequence[tuple[UUID, float]], limit: int, near: float) -> bool:
    """Whether the index found enough, and the nearest of it are near."""
    if len(found) < limit:
        return False
    cosines = sorted((1.0 - distance for _, distance in found), reverse=True)
    return cosines[min(VECTOR_CANDIDATES, limit) - 1] >= near


def _by_index(
    scope: QuerySet[Any], key: str, model: str, asked: Sequence[Vector], limit: int
) -> list[list[tuple[UUID, float]]]:
    """For each vector the keys found, with their distance."""
    statement, params = index_search(scope=scope, key=key, model=model, asked=asked, limit=limit)
    # Within one transaction, so that the settings end with it.
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
    """The SQL that the model's index answers: rows of the vector's place in ``asked``, a key
    and its distance."""
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
    """The condition that a text is in the scope; none where the scope is all there is."""
    if not scope.query.where and not scope.query.is_sliced and not scope.query.combinator:
        return "", ()
    inner, params = scope.order_by().values("pk").query.get_compiler(scope.db).as_sql()
    return f" AND near.{key}_id IN ({inner})", tuple(params)


def _literal(vector: Vector) -> str:
    return "[" + ",".join(map(repr, map(float, vector))) + "]"
