"""Find and renew PostgreSQL's statistics that keep values of deleted rows."""

from __future__ import annotations

from django.db import connection
from psycopg import sql

from memoryproject.foundation.text.fragments import Fragments
from sessions_app.forgetting.registry import swept_columns

_VALUES = """
SELECT stats.tablename, stats.attname, kept.value
FROM pg_stats AS stats, LATERAL (
    SELECT unnest(stats.most_common_vals::text::text[])
    UNION ALL SELECT unnest(stats.histogram_bounds::text::text[])
) AS kept (value)
WHERE stats.schemaname = current_schema() AND stats.tablename = ANY(%s)
"""
# Before PostgreSQL 18, the statistics of an empty table can't be removed.
_CLEAR = "SELECT pg_clear_attribute_stats(current_schema()::text, %s, %s, false)"
CLEARABLE = (18,)


def statistics_values() -> list[tuple[str, str, str]]:
    """Return the sampled values of swept columns: table, column, and value as text."""
    swept = swept_columns()
    with connection.cursor() as cursor:
        cursor.execute(_VALUES, [sorted({table for table, _ in swept})])
        kept = [row for row in cursor.fetchall() if row[:2] in swept]
    if connection.get_database_version() >= CLEARABLE:
        return kept
    empty = {table for table in {table for table, _, _ in kept} if not _has_rows(table)}
    return [row for row in kept if row[0] not in empty]


def _has_rows(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT EXISTS (SELECT 1 FROM {})").format(sql.Identifier(table)))
        return bool(cursor.fetchone()[0])


def statistics_stale(values: list[tuple[str, str, str]], texts: Fragments) -> set[tuple[str, str]]:
    """Return the columns whose statistics keep a forgotten text that no row holds any more.

    A value that a remaining row holds belongs to that row.
    """
    return {
        (table, column)
        for table, column, value in values
        if texts.are_in(value) and not _is_there(table, column, value)
    }


def statistics_renew(texts: Fragments) -> None:
    """Gather the statistics of the affected tables again from the remaining rows."""
    stale = statistics_stale(statistics_values(), texts)
    if not stale:
        return
    with connection.cursor() as cursor:
        for table in sorted({table for table, _ in stale}):
            cursor.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))
        # ANALYZE doesn't change the statistics of empty tables.
        for table, column in sorted(statistics_stale(statistics_values(), texts)):
            cursor.execute(_CLEAR, [table, column])


def _is_there(table: str, column: str, value: str) -> bool:
    query = sql.SQL("SELECT EXISTS (SELECT 1 FROM {} WHERE {}::text = %s)")
    with connection.cursor() as cursor:
        cursor.execute(query.format(sql.Identifier(table), sql.Identifier(column)), [value])
        return bool(cursor.fetchone()[0])
