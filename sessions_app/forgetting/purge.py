"""Makes PostgreSQL's own files let go of what was forgotten, now."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from psycopg import sql

from sessions_app.forgetting.registry import COLUMNS, OWN, SWEPT


def purge(*, progress: Callable[[str], None] = lambda _table: None) -> int:
    """Rewrite every table that texts are swept or removed from, and close the write-ahead log
    behind it; returns how many tables. Call it outside of a transaction.

    Deleted rows otherwise lie in PostgreSQL's files until vacuuming and new rows write over
    them, and in the write-ahead log until its files are removed. Each table is locked while it
    is rewritten. Raises django.db.DatabaseError where the role may not do it.
    """
    tables = sorted(
        table
        for table, columns in COLUMNS.items()
        if any(how in (SWEPT, OWN) for how, _ in columns.values())
    )
    with connection.cursor() as cursor:
        for table in tables:
            progress(table)
            # As composed SQL: Django's cursor takes no identifiers as parameters.
            cursor.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(table)))
        # The first brings the rewritten tables to the disk; after the switch the second leaves
        # no file of the log behind that is older.
        cursor.execute("CHECKPOINT")
        cursor.execute("SELECT pg_switch_wal()")
        cursor.execute("CHECKPOINT")
    return len(tables)
