"""Many rows that are like one, made by PostgreSQL: Django takes a second for a thousand."""

from __future__ import annotations

from django.db import connection
from django.db.models import Model
from psycopg import sql

from memoryproject.foundation.process.narrowing import present


def row_copy(row: Model, count: int, **changes: str) -> None:
    """Insert so many copies of a stored row.

    changes: for a column the SQL expression of its value, in which ``number`` counts from 1. The
    key must be among them, and every other column without two equal values.
    """
    fields = row._meta.local_concrete_fields
    columns = [present(field.column) for field in fields if not field.generated]
    values = [
        sql.SQL(changes[each]) if each in changes else sql.Identifier(each) for each in columns
    ]
    insert = sql.SQL(
        "INSERT INTO {table} ({columns}) SELECT {values} FROM {table},"
        " generate_series(1, {count}) AS number WHERE {key} = {pk}"
    ).format(
        table=sql.Identifier(row._meta.db_table),
        columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
        values=sql.SQL(", ").join(values),
        count=sql.Literal(count),
        key=sql.Identifier(present(row._meta.pk.column)),
        pk=sql.Literal(row.pk),
    )
    with connection.cursor() as cursor:
        cursor.execute(insert)
