"""Rows by the million, made by the database from expressions."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.models import AutoField, BigAutoField, Field, Model
from psycopg import sql

SETTINGS = {
    "session_replication_role": "replica",
    "synchronous_commit": "off",
    "maintenance_work_mem": "512MB",
    "work_mem": "256MB",
}
APPS = ("sessions_app", "memories_app", "cards_app", "audit", "hooks", "api", "django_q", "auth")


def model_named(name: str) -> type[Model] | None:
    """A model of ours, None where there is none of this name (yet)."""
    for label in APPS:
        try:
            return apps.get_model(label, name)
        except LookupError:
            continue
    return None


def rows_add(
    name: str,
    source: str,
    values: Mapping[str, str],
    parameters: Sequence[Any] = (),
    *,
    conflicts: bool = False,
) -> int:
    """Insert into the table of a model, from ``source`` (what stands behind FROM). ``values``:
    a column's name and an expression; the other columns get the model's defaults, so that this
    goes on working when a model gains a column. Returns how many rows; 0 without such a model.
    """
    model = model_named(name)
    if model is None:
        return 0
    columns = {field.column: field for field in model._meta.concrete_fields if not field.generated}
    known = {column: values[column] for column in values if column in columns}
    defaults = {
        column: default
        for column, field in columns.items()
        if column not in known and (default := _default(field)) is not None
    }
    # First the defaults, so that their parameters stand before those of the expressions.
    chosen = {column: expression for column, (expression, _) in defaults.items()} | known
    used = [each for _, given in defaults.values() for each in given]
    names = ", ".join(f'"{column}"' for column in chosen)
    statement = (
        f'INSERT INTO "{model._meta.db_table}" ({names}) SELECT {", ".join(chosen.values())} '
        f"FROM {source}" + (" ON CONFLICT DO NOTHING" if conflicts else "")
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [*used, *parameters])
        return int(cursor.rowcount)


def _default(field: Field[Any, Any]) -> tuple[str, list[Any]] | None:
    """An expression and its parameters; None where the database knows."""
    if isinstance(field, AutoField | BigAutoField) or field.has_db_default():
        return None
    if field.default is uuid.uuid4:
        return "gen_random_uuid()", []
    value = field.get_default()
    if value is None:
        if field.null:
            return None
        return "now()", []
    return "%s", [field.get_db_prep_save(value, connection)]


@contextmanager
def without_checks(tables: Sequence[str]) -> Iterator[None]:
    """While the block runs, foreign keys aren't looked up, and the indexes that only speed
    reading up aren't there. The triggers of our own do work."""
    with connection.cursor() as cursor:
        own = _own_triggers(cursor)
        _each(cursor, "ALTER TABLE {} ENABLE ALWAYS TRIGGER {}", own)
        for name, value in SETTINGS.items():
            cursor.execute("SELECT set_config(%s, %s, false)", [name, value])
        indexes = _plain_indexes(cursor, tables)
        for name, _ in indexes:
            cursor.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    yield
    with connection.cursor() as cursor:
        for _, definition in indexes:
            cursor.execute(definition)
        _each(cursor, "ALTER TABLE {} ENABLE TRIGGER {}", own)
        for name in SETTINGS:
            cursor.execute(f"RESET {name}")


def _own_triggers(cursor: Any) -> list[tuple[str, str]]:
    cursor.execute(
        "SELECT tgrelid::regclass::text, tgname FROM pg_trigger"
        " WHERE NOT tgisinternal AND tgenabled = 'O'"
    )
    return list(cursor.fetchall())


def _each(cursor: Any, statement: str, triggers: list[tuple[str, str]]) -> None:
    for names in triggers:
        cursor.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _plain_indexes(cursor: Any, tables: Sequence[str]) -> list[tuple[str, str]]:
    cursor.execute(
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index"
        " WHERE indrelid::regclass::text = ANY(%s) AND NOT indisunique",
        [list(tables)],
    )
    return list(cursor.fetchall())
