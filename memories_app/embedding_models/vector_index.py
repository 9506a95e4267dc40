"""The approximate index of a model's memory vectors: one partial index for each model.

A vector column without dimensions can't be indexed, so each index casts to the dimensions of
its model. A search must use the same cast to use the index: see ``cast_of``.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection
from psycopg import sql

from memories_app.models import EmbeddingModel, MemoryEmbedding

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


def cast_of(dimensions: int) -> str | None:
    """Return the type to which the index casts a model's vectors; None if there can't be one."""
    if dimensions <= MAX_VECTOR_DIMENSIONS:
        return f"vector({dimensions})"
    return f"halfvec({dimensions})" if dimensions <= MAX_HALFVEC_DIMENSIONS else None


def index_name(model_id: str) -> str:
    """Name the index by the model's id alone, so that a restored database can't mix up models."""
    return f"memory_vectors_{hashlib.sha256(model_id.encode()).hexdigest()[:16]}"


def index_state(model_id: str) -> IndexState:
    name = index_name(model_id)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)::oid",
            [connection.ops.quote_name(name)],
        )
        found = cursor.fetchone()
    return IndexState(name, found is not None, bool(found and found[0]))


def index_ensure(*, model: EmbeddingModel) -> bool:
    """Create the model's index unless a valid one exists; return whether it was created.

    Outside a transaction, writers and searches continue during the build. In a transaction the
    build locks them out.
    """
    cast = cast_of(model.dimensions)
    state = index_state(model.model_id)
    if state.valid or cast is None:
        return False
    if state.exists:
        logger.warning("The index %s is not whole: it is made again.", state.name)
        index_drop(model_id=model.model_id)
    ops = "vector_cosine_ops" if cast.startswith("vector") else "halfvec_cosine_ops"
    statement = sql.SQL(
        "CREATE INDEX {concurrently} {name} ON {table} USING hnsw ((vector::{cast}) {ops})"
        " WITH (ef_construction = {effort}) WHERE model = {model}"
    ).format(
        concurrently=_concurrently(),
        name=sql.Identifier(state.name),
        table=sql.Identifier(MemoryEmbedding._meta.db_table),
        cast=sql.SQL(cast),
        ops=sql.SQL(ops),
        effort=sql.Literal(EF_CONSTRUCTION),
        model=sql.Literal(model.model_id),
    )
    logger.info("The index %s of %s is being made.", state.name, model.model_id)
    with connection.cursor() as cursor, _for_building(cursor, model):
        cursor.execute(statement)
    return True


@contextmanager
def _for_building(cursor: Any, model: EmbeddingModel) -> Iterator[None]:
    """Set the memory for the graph and build without parallel workers.

    Parallel workers would take the cores that answer requests, and they need shared memory,
    which containers have little of.
    """
    rows = MemoryEmbedding.objects.filter(model=model.model_id).count()
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


def index_drop(*, model_id: str) -> bool:
    """Remove the model's index, valid or not; return whether there was one."""
    state = index_state(model_id)
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
