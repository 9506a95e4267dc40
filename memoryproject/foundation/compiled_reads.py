"""Compile a queryset once in a process, for reads that are made very often.

Building a queryset and compiling it takes Django several times as long as PostgreSQL takes to read
a few rows by their ids. Filters and rights stay in the queryset; what differs from call to call is
``Given``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Expression, Field, QuerySet


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
    """A statement with named parameters, and the values of those that are always the same.

    To be run as ``cursor.execute(read.statement, {**read.constants, "ids": ids})``.
    """

    statement: str
    constants: Mapping[str, Any]


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
