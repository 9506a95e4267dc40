"""The tables and rows that a backup holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import CharField, Model, TextField
from django_q.models import OrmQ, Schedule, Task
from psycopg import sql

from memoryproject.foundation.process.narrowing import present

# Logins to the admin: after a restore staff log in again. Jobs: their rows name functions or are
# pickles, so that a restore would run code from the archive; `install_schedules` makes the
# schedules, and the sweep takes up the open work. Changes of texts: a restore logs its own, with
# the ids of its own transactions.
LEFT_OUT: tuple[type[Model], ...] = (Session, Schedule, OrmQ, Task)
# Figures, which are computed again from the restored data.
COUNTED_ANEW = ("dashboard.Quarter", "dashboard.Day", "dashboard.Mark")

# Servers, databases and roles may have different settings. The archive's text must be the same
# everywhere, and a copy must not time out. A setting that a server lacks is skipped.
FIXED_FORM = {
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "statement_timeout": "0",
    "transaction_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}


@dataclass(frozen=True)
class Table:
    """A table with its stored columns; columns that PostgreSQL computes are left out."""

    name: str
    columns: tuple[str, ...]
    key: str
    key_is_text: bool

    def copy_out(self) -> sql.Composed:
        """Return SQL that copies all rows as text, ordered by key, the same on every server."""
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
    """Return every table of this project and of Django, by name."""
    models: list[type[Model]] = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy
        if model not in LEFT_OUT and model._meta.label not in COUNTED_ANEW
    ]
    models.append(MigrationRecorder(connection).Migration)
    return sorted(map(_table, models), key=lambda table: table.name)


def _table(model: type[Model]) -> Table:
    fields = [field for field in model._meta.local_concrete_fields if not field.generated]
    key = present(model._meta.pk)
    columns = tuple(field.column for field in fields if field.column)
    is_text = isinstance(key, CharField | TextField)
    return Table(model._meta.db_table, columns, str(key.column), is_text)


def sequences() -> list[str]:
    """Return the sequences of this project's keys; others in the schema are ignored."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sequence.relname FROM pg_class sequence"
            " JOIN pg_depend ON objid = sequence.oid AND classid = 'pg_class'::regclass"
            " AND refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i')"
            " JOIN pg_class owner ON owner.oid = refobjid"
            " WHERE sequence.relkind = 'S' AND owner.relname = ANY(%s)"
            " AND owner.relnamespace = current_schema()::regnamespace ORDER BY 1",
            [[table.name for table in all_tables()]],
        )
        return [name for (name,) in cursor.fetchall()]


def use_fixed_form(cursor: Any) -> None:
    """Fix the text format of values until the end of the transaction."""
    cursor.execute(
        "SELECT set_config(name, wanted.value, true) FROM pg_settings"
        " JOIN unnest(%s::text[], %s::text[]) AS wanted (name, value) USING (name)",
        [list(FIXED_FORM), list(FIXED_FORM.values())],
    )


@contextmanager
def rows_of(table: Table, cursor: Any) -> Iterator[Iterator[bytes]]:
    """Return a table's rows in COPY's format, in blocks. Raises DatabaseError.

    Until the end of the context, psycopg holds the connection's lock. If whoever reads the rows
    fails, the copy has to end before the transaction: its rollback would wait for the lock.
    """
    with connection.wrap_database_errors, cursor.copy(table.copy_out()) as copy:
        yield map(bytes, copy)
