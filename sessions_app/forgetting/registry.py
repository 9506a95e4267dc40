"""List every column that can hold a text, with the way forgetting treats it.

They stand in ``registry.json``: by treatment (see below), by the reason for it or by what they
hold, and by table, the names of its columns, separated by blanks. A test reads the columns from
the database and fails on one that is missing there: a new place that stores texts must state what
becomes of them.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import TypeAlias

from django.db import connection
from psycopg import sql

from memoryproject.foundation.retrieval.fragments import Fragments

# Deleted with its row, or redacted by ``sweep``.
SWEPT = "swept"
# It never holds a person's words.
SAFE = "safe"
# A record that is kept for its own sake: forgetting something else doesn't change it. It goes with
# its row, history included, when the row itself is removed.
OWN = "own"


def _columns() -> dict[str, dict[str, tuple[str, str]]]:
    """Return of each table its columns, each with its treatment and the reason for it."""
    found: defaultdict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    table = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    for how, reasons in table.items():
        for why, tables in reasons.items():
            for name, columns in tables.items():
                found[name].update(dict.fromkeys(columns.split(), (how, why)))
    return dict(found)


COLUMNS = _columns()


def statistics_columns() -> set[tuple[str, str]]:
    """Return table and name of each column whose statistics may keep a forgotten text."""
    return swept_columns() | _treated(OWN)


def swept_columns() -> set[tuple[str, str]]:
    """Return table and name of each swept column, except vectors, which aren't text."""
    return {(table, column) for table, column in _treated(SWEPT) if column != "vector"}


def _treated(treatment: str) -> set[tuple[str, str]]:
    return {
        (table, column)
        for table, columns in COLUMNS.items()
        for column, (how, _) in columns.items()
        if how == treatment
    }


# The statistics that PostgreSQL keeps of the columns: they hold values of rows.

_VALUES = """
SELECT stats.tablename, stats.attname, kept.value
FROM pg_stats AS stats, LATERAL (
    SELECT unnest(stats.most_common_vals::text::text[])
    UNION ALL SELECT unnest(stats.histogram_bounds::text::text[])
) AS kept (value)
WHERE stats.schemaname = current_schema() AND stats.tablename = ANY(%s) AND stats.attname = ANY(%s)
"""

# Before PostgreSQL 18, the statistics of an empty table can't be removed.
# A partitioned table has statistics of all its partitions.
_CLEAR = """
SELECT pg_clear_attribute_stats(current_schema()::text, %s, %s, inherited)
FROM (VALUES (false), (true)) AS both_kinds (inherited)
"""

# By the name of each partition, that of its table.
_PARTITIONS = """
SELECT leaf.relname, parent.relname FROM pg_inherits
JOIN pg_class leaf ON leaf.oid = inhrelid JOIN pg_class parent ON parent.oid = inhparent
WHERE leaf.relkind = 'r' AND leaf.relnamespace = current_schema()::regnamespace
"""

CLEARABLE = (18,)
# Table, column, and value as text.
Sampled: TypeAlias = list[tuple[str, str, str]]


def statistics_values() -> Sampled:
    """Return the sampled values of erasable columns."""
    swept = statistics_columns()
    with connection.cursor() as cursor:
        cursor.execute(_PARTITIONS)
        table_of = dict(cursor.fetchall())
        tables = sorted({*table_of, *(table for table, _ in swept)})
        cursor.execute(_VALUES, [tables, sorted({column for _, column in swept})])
        kept = [row for row in cursor if (table_of.get(row[0], row[0]), row[1]) in swept]
    if connection.get_database_version() >= CLEARABLE:
        return kept
    empty = {table for table in {table for table, _, _ in kept} if not _has_row(table)}
    return [row for row in kept if row[0] not in empty]


def statistics_stale(values: Sampled, texts: Fragments) -> set[tuple[str, str]]:
    """Return the columns whose statistics keep a forgotten text that no row holds any more.

    A value that a remaining row holds belongs to that row.
    """
    return {
        (table, column)
        for table, column, value in values
        if texts.are_in(value) and not _has_row(table, column, value)
    }


def statistics_renew(texts: Fragments) -> tuple[Sampled, set[tuple[str, str]]]:
    """Gather the statistics of the affected tables again from the remaining rows.

    Return the values that are sampled then, and the columns that still keep a forgotten text.
    """
    values = statistics_values()
    stale = statistics_stale(values, texts)
    if not stale:
        return values, stale
    with connection.cursor() as cursor:
        for table in sorted({table for table, _ in stale}):
            cursor.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))
        # ANALYZE doesn't change the statistics of empty tables.
        for table, column in sorted(statistics_stale(statistics_values(), texts)):
            cursor.execute(_CLEAR, [table, column])
    values = statistics_values()
    return values, statistics_stale(values, texts)


def _has_row(table: str, column: str = "", value: str = "") -> bool:
    """Return whether the table has a row, or one with this value in the column."""
    query = sql.SQL("SELECT EXISTS (SELECT 1 FROM {})").format(sql.Identifier(table))
    if column:
        query = sql.SQL("SELECT EXISTS (SELECT 1 FROM {} WHERE {}::text = %s)").format(
            sql.Identifier(table), sql.Identifier(column)
        )
    with connection.cursor() as cursor:
        cursor.execute(query, [value] if column else None)
        return bool(cursor.fetchone()[0])
