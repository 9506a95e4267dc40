"""Vector search: the index of a model, and the texts whose vectors are nearest to a query."""

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, connections, transaction
from django.db.models import Model, QuerySet
from pgvector.django import CosineDistance
from psycopg import sql

from memories_app.models import EmbeddingModel, Memory, MemoryEmbedding

logger = logging.getLogger(__name__)

# The maximum of pgvector's HNSW index. With more dimensions a search is exact.
MAX_VECTOR_DIMENSIONS = 2_000

MAX_HALFVEC_DIMENSIONS = 4_000

# More than pgvector's 64: measured by benchmarks/measure_index.py.
EF_CONSTRUCTION = 128

# The build is ten times slower if the graph doesn't fit. It uses only what it needs of this.
MAX_MEMORY_MB = 2_048


@dataclass(frozen=True)
class IndexState:
    """The state of an index. ``valid``: searches may use it; an interrupted build is not valid."""

    name: str
    exists: bool
    valid: bool


def cast_of(dimensions: int, table: type[Model] = MemoryEmbedding) -> str | None:
    """Return the type to which the index casts a model's vectors; None if there can't be one.

    That of memories has full precision where it can. That of messages has half of it, and half the
    size: it only chooses candidates, whose similarity is computed from the stored vectors.
    """
    if dimensions <= MAX_VECTOR_DIMENSIONS and table is MemoryEmbedding:
        return f"vector({dimensions})"
    return f"halfvec({dimensions})" if dimensions <= MAX_HALFVEC_DIMENSIONS else None


def index_name(model_id: str, table: type[Model] = MemoryEmbedding) -> str:
    """Name the index by the model's id, so that a restored database can't mix up models."""
    texts = "memory" if table is MemoryEmbedding else "message"
    return f"{texts}_vectors_{hashlib.sha256(model_id.encode()).hexdigest()[:16]}"


def index_state(model_id: str, table: type[Model] = MemoryEmbedding) -> IndexState:
    """Return the state of the index of a model's vectors in the table."""
    name = index_name(model_id, table)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)::oid",
            [connection.ops.quote_name(name)],
        )
        found = cursor.fetchone()
    return IndexState(name, found is not None, bool(found and found[0]))


def index_ensure(*, model: EmbeddingModel, table: type[Model] = MemoryEmbedding) -> bool:
    """Create the model's index unless a valid one exists; return whether it was created.

    table: that of the vectors, of memories or of messages. Outside a transaction, writers and
    searches continue during the build. In a transaction the build locks them out.
    """
    cast = cast_of(model.dimensions, table)
    state = index_state(model.model_id, table)
    if state.valid or cast is None:
        return False
    if state.exists:
        logger.warning("The index %s is not whole: it is made again.", state.name)
        index_drop(model_id=model.model_id, table=table)
    ops = "vector_cosine_ops" if cast.startswith("vector") else "halfvec_cosine_ops"
    statement = sql.SQL(
        "CREATE INDEX {concurrently} {name} ON {table} USING hnsw ((vector::{cast}) {ops})"
        " WITH (ef_construction = {effort}) WHERE model = {model}"
    ).format(
        concurrently=_concurrently(),
        name=sql.Identifier(state.name),
        table=sql.Identifier(table._meta.db_table),
        cast=sql.SQL(cast),
        ops=sql.SQL(ops),
        effort=sql.Literal(EF_CONSTRUCTION),
        model=sql.Literal(model.model_id),
    )
    logger.info("The index %s of %s is being made.", state.name, model.model_id)
    with connection.cursor() as cursor, _for_building(cursor, model, table):
        cursor.execute(statement)
    return True


@contextmanager
def _for_building(cursor: Any, model: EmbeddingModel, table: type[Model]) -> Iterator[None]:
    """Set the memory for the graph and build without parallel workers.

    Parallel workers would take the cores that answer requests, and they need shared memory,
    which containers have little of.
    """
    rows = table._default_manager.filter(model=model.model_id).count()
    # The size of each vector and of its lists of neighbours.
    needed = rows * (model.dimensions * 4 + 600) * 3 // 2 // 1024**2
    wanted = {
        "maintenance_work_mem": f"{max(64, min(needed, MAX_MEMORY_MB))}MB",
        "max_parallel_maintenance_workers": "0",
    }
    in_transaction = connection.in_atomic_block
    for name, value in wanted.items():
        cursor.execute("SELECT set_config(%s, %s, %s)", [name, value, in_transaction])
    try:
        yield
    finally:
        # In a transaction the settings end with it.
        if not in_transaction:
            for name in wanted:
                cursor.execute(f"RESET {name}")


def index_drop(*, model_id: str, table: type[Model] = MemoryEmbedding) -> bool:
    """Remove the model's index, valid or not; return whether there was one."""
    state = index_state(model_id, table)
    if state.exists:
        with connection.cursor() as cursor:
            cursor.execute(
                sql.SQL("DROP INDEX {} IF EXISTS {}").format(
                    _concurrently(), sql.Identifier(state.name)
                )
            )
    return state.exists


def _concurrently() -> sql.SQL:
    return sql.SQL("" if connection.in_atomic_block else "CONCURRENTLY")


# Counted in numbers, not texts: the time of an exact search also grows with the dimensions.
MAX_NUMBERS_EXACTLY = 5_000 * 256

# ef_search: a larger one finds more and is slower. Not strict_order, which drops nearer results of
# later steps. After so many vectors outside the scope the search stops.
_SETTINGS = (
    "SET LOCAL hnsw.ef_search = 400; SET LOCAL hnsw.iterative_scan = relaxed_order;"
    " SET LOCAL hnsw.max_scan_tuples = 20000"
)

Vector = Sequence[float]


def nearest_keys(*, scope: QuerySet[Memory], model: str, vector: Vector, limit: int) -> list[UUID]:
    """Return the ids of the memories whose vectors of this model are nearest to ``vector``.

    A large scope is searched by the index, which is reliable for what is near.
    """
    most = MAX_NUMBERS_EXACTLY // len(vector)
    is_large = scope.order_by().values("pk")[most : most + 1].exists()
    search = nearest_by_index if is_large and cast_of(len(vector)) else nearest_exactly
    return search(scope=scope, model=model, vector=vector, limit=limit)


def nearest_exactly(
    *, scope: QuerySet[Memory], model: str, vector: Vector, limit: int
) -> list[UUID]:
    """Return the same as ``nearest_keys`` by reading every vector in the scope."""
    rows = MemoryEmbedding.objects.filter(model=model, memory__in=scope.order_by().values("pk"))
    nearest = rows.order_by(CosineDistance("vector", list(vector)))
    return list(nearest.values_list("memory_id", flat=True)[:limit])


def nearest_by_index(
    *, scope: QuerySet[Memory], model: str, vector: Vector, limit: int
) -> list[UUID]:
    """Return the results of the model's index."""
    table, cast = MemoryEmbedding._meta.db_table, cast_of(len(vector))
    where, scope_params = _in_scope(scope)
    statement = (
        f"SELECT near.memory_id FROM {table} near WHERE near.model = %s{where}"  # noqa: S608 names of our own
        f" ORDER BY near.vector::{cast} <=> %s::{cast} LIMIT %s"
    )
    # In one transaction, so that the settings end with it.
    with transaction.atomic(scope.db, savepoint=False), connections[scope.db].cursor() as cursor:
        cursor.execute(_SETTINGS)
        cursor.execute(statement, [model, *scope_params, _literal(vector), limit])
        return [found for (found,) in cursor.fetchall()]


def _in_scope(scope: QuerySet[Memory]) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL condition that a text is in the scope; empty for an unrestricted scope."""
    if not scope.query.where and not scope.query.is_sliced and not scope.query.combinator:
        return "", ()
    inner, params = scope.order_by().values("pk").query.get_compiler(scope.db).as_sql()
    return f" AND near.memory_id IN ({inner})", tuple(params)


def _literal(vector: Vector) -> str:
    return "[" + ",".join(map(repr, map(float, vector))) + "]"
