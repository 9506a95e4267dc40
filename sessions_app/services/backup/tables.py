"""What of the database a backup holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import CharField, Model, TextField
from psycopg import sql

# Who is logged in to the admin: after a restore staff log in again.
LEFT_OUT: tuple[type[Model], ...] = (Session,)


@dataclass(frozen=True)
class Table:
    """A table with the columns that are written; what PostgreSQL computes is left out."""

    name: str
    columns: tuple[str, ...]
    key: str
    key_is_text: bool

    def copy_out(self) -> sql.Composed:
        """All rows as text, in the order of the key, the same on every server."""
        query = "COPY (SELECT {columns} FROM {table} ORDER BY {key}{collation}) TO STDOUT"
        return sql.SQL(query).format(
            columns=_names(self.columns),
            table=sql.Identifier(self.name),
            key=sql.Identifier(self.key),
            collation=sql.SQL(' COLLATE "C"' if self.key_is_text else ""),
        )

    def copy_in(self) -> sql.Composed:
        return sql.SQL("COPY {table} ({columns}) FROM STDIN").format(
            columns=_names(self.columns), table=sql.Identifier(self.name)
        )


def _names(columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def all_tables() -> list[Table]:
    """Every table of ours, Django's own among them, by name."""
    models: list[type[Model]] = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy and model not in LEFT_OUT
    ]
    models.append(MigrationRecorder(connection).Migration)
    return sorted(map(_table, models), key=lambda table: table.name)


def _table(model: type[Model]) -> Table:
    fields = [field for field in model._meta.local_concrete_fields if not field.generated]
    key = model._meta.pk
    assert key is not None
    columns = tuple(field.column for field in fields if field.column)
    is_text = isinstance(key, CharField | TextField)
    return Table(model._meta.db_table, columns, str(key.column), is_text)


def sequences() -> list[str]:
    """The sequences that give our tables their keys."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'S' "
            "AND relnamespace = current_schema()::regnamespace ORDER BY relname"
        )
        return [name for (name,) in cursor.fetchall()]


def rows_of(table: Table, cursor: Any) -> Iterator[bytes]:
    """A table's rows as COPY writes them, in blocks."""
    with cursor.copy(table.copy_out()) as copy:
        for block in copy:
            yield bytes(block)
