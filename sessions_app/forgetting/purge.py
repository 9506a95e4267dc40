"""Remove forgotten texts from PostgreSQL's own files at once."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from psycopg import sql

from sessions_app.forgetting.registry import COLUMNS, OWN, SWEPT


def purge(*, progress: Callable[[str], None] = lambda _table: None) -> int:
    """Rewrite every table with swept or deleted texts, and close the write-ahead log after it.

    Returns the number of tables. Call it outside of a transaction.

    Otherwise deleted rows stay in PostgreSQL's files until vacuuming and new rows overwrite them,
    and in the write-ahead log until its files are removed. Each table is locked while it is
    rewritten. Raises django.db.DatabaseError if the role lacks the privileges.
    """
    tables = sorted(
        table
        for table, columns in COLUMNS.items()
        if any(how in (SWEPT, OWN) for how, _ in columns.values())
    )
    with connection.cursor() as cursor:
        for table in tables:
            progress(table)
            # As composed SQL, because Django's cursor takes no identifiers as parameters.
            cursor.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(table)))
        # The first checkpoint writes the rewritten tables to disk; after the switch the second one
        # leaves no older log file behind.
        cursor.execute("CHECKPOINT")
        cursor.execute("SELECT pg_switch_wal()")
        cursor.execute("CHECKPOINT")
    return len(tables)
