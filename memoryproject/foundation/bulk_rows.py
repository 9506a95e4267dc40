"""Write many rows in few round trips to PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from django.db import connection, models
from django.db.models import Field, Model
from pgvector import Vector
from pgvector.django import VectorField
from psycopg.adapt import Dumper
from psycopg.pq import Format

# From so many rows on COPY is faster than INSERT, although it takes one more round trip.
MIN_FOR_COPY = 20


@contextmanager
def sent_together() -> Iterator[None]:
    """Send the writes of the block one after the other, and wait for PostgreSQL once, at its end.

    Use it in a transaction, for writes that must succeed: how many rows an UPDATE changes isn't
    known in the block, and an error is raised by a later statement or the end. Within another such
    block it adds nothing. No COPY is possible in it.
    """
    if connection.connection.info.pipeline_status:
        yield
        return
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


def rows_add(rows: Sequence[Model], *, as_given: bool = False) -> None:
    """Insert new rows of one model; their order is kept.

    The same as ``bulk_create``, but for two things: rows whose key the database chooses don't
    learn it, and a column's default must be the model's, not the database's. Django takes several
    times as long to build an INSERT of hundreds of rows as PostgreSQL takes to run it.

    as_given: also times that the model sets by itself (``auto_now``) are those of the rows.
    """
    if not rows:
        return
    if len(rows) < MIN_FOR_COPY and not as_given:
        type(rows[0])._default_manager.bulk_create(rows)
        return
    columns = _columns(type(rows[0]), as_given)
    with connection.wrap_database_errors, connection.cursor() as cursor:
        cursor.adapters.register_dumper(Vector, _VectorDumper)
        with cursor.copy(_statement(type(rows[0]))) as copy:
            for row in rows:
                copy.write_row([read(row) for read in columns])
    for row in rows:
        row._state.adding = False
        row._state.db = connection.alias


class _VectorDumper(Dumper):
    """Write a vector as the database keeps it: a fifth of its text, which takes long to parse."""

    format = Format.BINARY

    def dump(self, obj: Vector) -> bytes:
        return bytes(obj.to_binary())


def _stored_fields(model: type[Model]) -> list[Field[Any, Any]]:
    return [
        field
        for field in model._meta.concrete_fields
        if not field.generated and not isinstance(field, models.AutoField)
    ]


@cache
def _statement(model: type[Model]) -> str:
    fields = _stored_fields(model)
    names = ", ".join(f'"{field.column}"' for field in fields)
    binary = any(isinstance(field, VectorField) for field in fields)
    form = " (FORMAT BINARY)" if binary else ""
    return f'COPY "{model._meta.db_table}" ({names}) FROM STDIN{form}'


@cache
def _columns(model: type[Model], as_given: bool) -> Sequence[Callable[[Model], Any]]:
    """Return a function for each column that returns a row's value."""
    return [_reader(field, as_given) for field in _stored_fields(model)]


def _reader(field: Field[Any, Any], as_given: bool) -> Callable[[Model], Any]:
    sets_itself = getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False)
    if sets_itself and not as_given:
        return partial(field.pre_save, add=True)
    if isinstance(field, VectorField):
        return lambda row: Vector(getattr(row, field.attname))
    return lambda row: field.get_db_prep_save(getattr(row, field.attname), connection)
