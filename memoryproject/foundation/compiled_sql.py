"""Compile a queryset once in a process, for statements that are made very often, and prepare it.

Building a queryset and compiling it takes Django several times as long as PostgreSQL takes to read
a few rows by their ids. Filters and rights stay in the queryset; what differs from call to call is
``Given``. PostgreSQL parses and plans the statement once in each connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.models import Expression, Field, IntegerField, Model, QuerySet, UUIDField
from django.db.models.expressions import Combinable
from django.db.models.query import get_related_populators
from django.db.models.sql import UpdateQuery
from django.db.models.sql.compiler import SQLCompiler
from psycopg import Cursor, ServerCursor
from psycopg.pq import Format
from psycopg.sql import quote

from memoryproject.foundation.unawaited_commits import UNAWAITED

Row = TypeVar("Row", bound=Model)


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


def given_ids(name: str) -> Given:
    """Return ids that are known only when the statement runs, for ``pk__in``: see ``sent_ids``."""
    # PostgreSQL makes a plan for each call if that depends on the number of ids, which it doesn't
    # know of an array that is selected.
    return Given(name, UUIDField(), "(SELECT unnest((SELECT %s::uuid[])))")


def sent_ids(ids: Iterable[UUID]) -> str:
    """Return the ids as PostgreSQL writes an array. The driver takes many times as long."""
    return f"{{{','.join(key.hex for key in ids)}}}"


class _PreparedCursor(Cursor[Any]):
    def _convert_query(self, *given: Any) -> Any:
        # Django's log of statements reads it, and the driver keeps it for some cursors only.
        self._query = super()._convert_query(*given)
        return self._query


def read_prepared(
    statement: str,
    parameters: Sequence[Any] | Mapping[str, Any],
    sent_as: Format = Format.BINARY,
) -> list[tuple[Any, ...]]:
    """Return the rows of a statement that each connection prepares once.

    Django's own cursors insert the parameters into the statement, so that PostgreSQL parses and
    plans it each time, and read all values as text. That form is for values that Django converts.
    """
    with _prepared(statement, parameters, sent_as) as cursor:
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def run_prepared(statement: str, parameters: Mapping[str, Any]) -> int:
    """Run a statement that each connection prepares once; return how many rows it wrote."""
    with _prepared(statement, parameters, Format.TEXT) as cursor:
        count: int = cursor.rowcount
        return count


@contextmanager
def _prepared(
    statement: str, parameters: Sequence[Any] | Mapping[str, Any], sent_as: Format
) -> Iterator[Any]:
    # Each attribute of the connection's proxy takes as long as a step of the driver.
    database = connections[DEFAULT_DB_ALIAS]
    database.close_if_health_check_failed()
    database.ensure_connection()
    prepared: Any = _PreparedCursor(database.connection)
    prepared.format = sent_as
    wrap = database.make_debug_cursor if database.queries_logged else database.make_cursor
    # Django switches prepared statements off. While they are on, the driver keeps the text of every
    # statement, and those of Django's own cursors have the values in them.
    database.connection.prepare_threshold = 0
    try:
        with wrap(prepared) as cursor:
            cursor.execute(statement, parameters)
            yield cursor
    finally:
        database.connection.prepare_threshold = None


def read_by_id(statement: str, **given: Any) -> dict[UUID, Sequence[Any]]:
    """Return the rows by their first column, which they are without."""
    return {row[0]: row[1:] for row in read_prepared(statement, given)}


def read_in_portions(
    statement: str, parameters: Mapping[str, Any], size: int
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a statement, so many at a time, all as of its beginning."""
    # A cursor outside a transaction would let the server copy all rows first.
    with transaction.atomic(savepoint=False):
        portions: Any = ServerCursor(connection.connection, "portions")
        portions.format = Format.BINARY
        with connection.make_cursor(portions) as cursor:
            cursor.execute(statement, parameters)
            while rows := cursor.fetchmany(size):
                yield rows


def compiled_models(build: Callable[[], QuerySet[Row]]) -> Callable[..., list[Row]]:
    """Decorate a function that returns a queryset of models, which is compiled at the first call.

    The decorated function takes what is ``Given`` and returns the models, with those that the
    queryset selects with them (``select_related``) and with its annotations.
    """

    @cache
    def reader() -> _ModelReader:
        return _ModelReader(build())

    def read(**given: Any) -> list[Row]:
        return reader().read(given)

    return read


class _ModelReader:
    """Reads the models of a queryset, as Django's own querysets make them of rows."""

    def __init__(self, rows: QuerySet[Any, Any]) -> None:
        compiler = rows.query.get_compiler(connection=connection)
        self._statement = _statement(compiler)
        select: Any = compiler.select
        about: Any = compiler.klass_info
        first, last = about["select_fields"][0], about["select_fields"][-1] + 1
        self._model, self._columns = about["model"], slice(first, last)
        self._names = [column[0].target.attname for column in select[first:last]]
        populators: Any = get_related_populators
        self._related = populators(about, select, DEFAULT_DB_ALIAS)
        self._annotations = list((compiler.annotation_col_map or {}).items())
        self._converters = compiler.get_converters([column[0] for column in select])
        self._convert = compiler.apply_converters

    def read(self, given: Mapping[str, Any]) -> list[Any]:
        found = []
        rows = read_prepared(self._statement, given, Format.TEXT)
        for row in self._convert(rows, self._converters):
            model = self._model.from_db(DEFAULT_DB_ALIAS, self._names, row[self._columns])
            for populator in self._related:
                populator.populate(row, model)
            for name, column in self._annotations:
                setattr(model, name, row[column])
            found.append(model)
        return found


def rows_update(
    model: type[Model],
    where: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    is_awaited: bool = True,
) -> int:
    """Do the same as ``filter(**where).update(**values)``, compiled once for the same names.

    Expressions, and tuples in ``where``, are part of the statement, so there must be few different
    ones; an expression that is made once is compared faster. ``is_awaited``: whether the commit
    waits for the disk; see ``unawaited``. Returns how many rows were updated.
    """
    statement, given = _update_of(model, where, values)
    if not is_awaited:
        statement = unawaited(statement)
    return run_prepared(statement, given)


class Update(NamedTuple):
    """The arguments of ``rows_update``."""

    model: type[Model]
    where: Mapping[str, Any]
    values: Mapping[str, Any]


def rows_update_chained(first: Update, then: Update) -> int:
    """Do two updates in one statement, the second only where the first found a row.

    Returns how many rows the first one updated.
    """
    before, given = _update_of(*first)
    after, then_given = _update_of(*then, prefix="then_")
    found = f"WITH found AS ({before} RETURNING 1)"
    chained = f"chained AS ({after} AND EXISTS (SELECT FROM found))"
    statement = f"{found}, {chained} SELECT FROM found"
    return run_prepared(statement, {**given, **then_given})


def unawaited(statement: str) -> str:
    """Return a statement that ends with its conditions, so that its commit isn't waited for.

    Within a transaction it isn't changed: the commit would be that of other statements, too.
    """
    return statement if connection.in_atomic_block else f"{statement} AND {UNAWAITED}"


def _update_of(
    model: type[Model], where: Mapping[str, Any], values: Mapping[str, Any], prefix: str = ""
) -> tuple[str, dict[str, Any]]:
    """Return the statement and its values, whose names begin with ``prefix``."""
    fixed: dict[str, Any]
    fixed = {name: value for name, value in where.items() if isinstance(value, tuple | Combinable)}
    fixed |= {f"{name}__isnull": True for name, value in where.items() if value is None}
    where = {name: value for name, value in where.items() if value is not None}
    computed = {name: value for name, value in values.items() if isinstance(value, Combinable)}
    given = {f"{prefix}where_{name}": where[name] for name in where.keys() - fixed.keys()}
    for name in values.keys() - computed.keys():
        field: Any = model._meta.get_field(name)
        value = values[name].pk if isinstance(values[name], Model) else values[name]
        given[f"{prefix}to_{name}"] = field.get_db_prep_save(value, connection)
    names = (tuple(where), tuple(values), tuple(fixed.items()), tuple(computed.items()))
    return _update(model, *names, prefix), given


@lru_cache(maxsize=256)
def _update(
    model: type[Model],
    where: tuple[str, ...],
    values: tuple[str, ...],
    fixed: tuple[tuple[str, Any], ...],
    computed: tuple[tuple[str, Any], ...],
    prefix: str,
) -> str:
    fields: dict[str, Any] = {field.name: field for field in model._meta.concrete_fields}
    fields |= {field.attname: field for field in model._meta.concrete_fields}
    fields["pk"] = model._meta.pk
    conditions: dict[str, Any] = dict(fixed)
    for name in where:
        conditions.setdefault(name, Given(f"{prefix}where_{name}", fields[name.partition("__")[0]]))
    changes: dict[str, Any] = dict(computed)
    for name in values:
        changes.setdefault(name, Given(f"{prefix}to_{name}", fields[name]))
    query: Any = model._default_manager.filter(**conditions).query.chain(UpdateQuery)
    query.add_update_values(changes)
    return _statement(query.get_compiler(connection=connection))


def row_add(row: Model, *, may_exist: bool = False) -> None:
    """Insert a new row, as ``save(force_insert=True)`` does, and read a key that PostgreSQL chose.

    ``may_exist``: it takes the place of a row with the same key. No signals are sent.
    """
    given = {
        field.column: field.get_db_prep_save(field.pre_save(row, True), connection)
        for field in _inserted(type(row))
    }
    with _prepared(_insert(type(row), may_exist), given, Format.TEXT) as cursor:
        if row._meta.auto_field is not None:
            (row.pk,) = cursor.fetchone()
    row._state.adding = False
    row._state.db = DEFAULT_DB_ALIAS


@cache
def _inserted(model: type[Model]) -> list[Any]:
    """Return the fields whose values are given."""
    fields: list[Any] = [each for each in model._meta.concrete_fields if not each.generated]
    return [each for each in fields if each is not model._meta.auto_field]


@cache
def _insert(model: type[Model], may_exist: bool) -> str:
    columns = [field.column for field in _inserted(model)]
    key: Any = model._meta.pk
    names = ", ".join(f'"{column}"' for column in columns)
    values = ", ".join(f"%({column})s" for column in columns)
    insert = f'INSERT INTO "{model._meta.db_table}" ({names}) VALUES ({values})'  # noqa: S608 names
    if may_exist:
        others = [column for column in columns if column != key.column]
        changes = ", ".join(f'"{name}" = excluded."{name}"' for name in others)
        return f'{insert} ON CONFLICT ("{key.column}") DO UPDATE SET {changes}'
    return insert if model._meta.auto_field is None else f'{insert} RETURNING "{key.column}"'


def compiled(rows: QuerySet[Any, Any]) -> str:
    """Return the statement of a queryset of ``values_list``, with named parameters.

    Raise TypeError if Django would convert a column after reading it, as it does with JSON.
    """
    compiler = rows.query.get_compiler(connection=connection)
    statement = _statement(compiler)
    converters = compiler.get_converters([column[0] for column in compiler.select])
    # An integer is one already.
    converted = [
        place
        for place, (_, expression) in converters.items()
        if not isinstance(expression.output_field, IntegerField)
    ]
    if converted:
        raise TypeError(f"Read columns {converted} of {rows.model.__name__} as text.")
    return statement


def _statement(compiler: SQLCompiler) -> str:
    """Return the statement with its values, and with names for what is ``Given``."""
    statement, parameters = compiler.as_sql()
    values = [
        f"%({value.name})s" if isinstance(value, Given) else quote(value).replace("%", "%%")
        for value in parameters
    ]
    return statement.replace("%%", "%%%%") % tuple(values)
