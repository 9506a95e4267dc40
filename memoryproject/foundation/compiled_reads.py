"""Compile a queryset once in a process, for reads that are made very often, and prepare it.

Building a queryset and compiling it takes Django several times as long as PostgreSQL takes to read
a few rows by their ids. Filters and rights stay in the queryset; what differs from call to call is
``Given``. PostgreSQL parses and plans the statement once in each connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Expression, Field, QuerySet
from psycopg import Cursor
from psycopg.pq import Format


class Given(Expression):
    """A value that is known only when the statement runs.

    template: what stands in the statement, such as a subquery for ``__in``.
    """

    def __init__(self, name: str, output_field: Field[Any, Any], template: str = "%s") -> None:
        super().__init__(output_field=output_field)
        self.name = name
        self.template = template

    def as_sql(self, *_: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        return self.template, [self]


class CompiledRead(NamedTuple):
    """A statement with named parameters, and the values of those that are always the same."""

    statement: str
    constants: Mapping[str, Any]

    def rows(self, **given: Any) -> list[tuple[Any, ...]]:
        """Return what the statement reads with these values."""
        return read_prepared(self.statement, {**self.constants, **given})


class _PreparedCursor(Cursor[Any]):
    def _convert_query(self, *given: Any) -> Any:
        # Django's log of statements reads it, and the driver keeps it for some cursors only.
        self._query = super()._convert_query(*given)
        return self._query


def read_prepared(
    statement: str, parameters: Sequence[Any] | Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Return the rows of a statement that each connection prepares once.

    Django's own cursors insert the parameters into the statement, so that PostgreSQL parses and
    plans it each time, and read all values as text.
    """
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    # By default Django switches prepared statements off. Its own cursors never use them.
    connection.connection.prepare_threshold = 0
    prepared = _PreparedCursor(connection.connection)
    prepared.format = Format.BINARY
    wrap = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    with wrap(prepared) as cursor:
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def compiled(rows: QuerySet[Any, Any]) -> CompiledRead:
    """Return the statement of a queryset of ``values_list``.

    Raise TypeError if Django would convert a column after reading it, as it does with JSON.
    """
    compiler = rows.query.get_compiler(connection=connection)
    statement, parameters = compiler.as_sql()
    converted = compiler.get_converters([column[0] for column in compiler.select])
    if converted:
        raise TypeError(f"Read columns {sorted(converted)} of {rows.model.__name__} as text.")
    names, constants = [], {}
    for place, value in enumerate(parameters):
        if isinstance(value, Given):
            names.append(f"%({value.name})s")
        else:
            names.append(f"%(constant_{place})s")
            constants[f"constant_{place}"] = value
    return CompiledRead(statement.replace("%%", "%%%%") % tuple(names), constants)
