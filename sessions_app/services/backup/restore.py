"""Restores a backup into an empty database."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db import OperationalError, connection, transaction
from psycopg import sql
from psycopg.errors import LockNotAvailable

from sessions_app.services.backup.archive import ArchiveReader, Manifest
from sessions_app.services.backup.tables import Table, all_tables, rows_of
from sessions_app.services.backup.write import Report, RowCount, migrations_applied, report_of

logger = logging.getLogger(__name__)

# Any number that nothing else uses.
_LOCK = 0x2E5708E
LOCK_TIMEOUT = "10s"

# What `migrate` and `make run` put into a fresh database. It gives way to the backup's own.
OF_A_FRESH_DATABASE = {
    "django_migrations",
    "django_content_type",
    "auth_permission",
    "django_q_schedule",
    "django_q_task",
    "django_q_ormq",
}


class RestoreError(Exception):
    """The backup can't be restored here; the text says why and what to do."""


def backup_restore(
    *,
    path: Path,
    write_keys: Callable[[Mapping[str, bytes]], None],
    progress: Callable[[int, int], None],
) -> Report:
    """Check the whole archive, then put all of it into the database, which must be empty and
    have its tables.

    One transaction: a process that is killed anywhere leaves the database as it was. Before
    the commit every table is read back and compared with the archive. ``write_keys`` is given
    the archive's keys at the end. Raises ArchiveError, RestoreError and DatabaseError; then
    nothing has changed.
    """
    with ArchiveReader(path) as archive:
        archive.check_all()
        manifest = archive.manifest
        tables = all_tables()
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                _lock(cursor, tables)
                _check_fits(cursor, manifest, tables)
                _check_empty(cursor, tables)
                cursor.execute("SET CONSTRAINTS ALL DEFERRED")
                _empty(cursor, tables)
                # Each row is written once and read once.
                count = RowCount(progress, 2 * manifest.rows)
                for table in tables:
                    _copy_in(cursor, archive, table, count)
                _set_sequences(cursor, manifest)
                for table in tables:
                    _check_same(cursor, manifest, table, count)
                count.finish()
                keys = {name: b"".join(archive.blocks(key)) for name, key in manifest.keys.items()}
                write_keys(keys)
        except OperationalError as error:
            if isinstance(error.__cause__, LockNotAvailable):
                raise RestoreError(
                    "The database is in use. Stop the server and the workers, then try again."
                ) from error
            raise
    ContentType.objects.clear_cache()
    report = report_of(path, manifest)
    logger.info("A backup was restored: %d rows of %d tables.", report.rows, report.tables)
    return report


def _lock(cursor: Any, tables: list[Table]) -> None:
    """Nobody else writes until the end; a second restore is refused."""
    cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
    if not cursor.fetchone()[0]:
        raise RestoreError("Another restore is at work in this database.")
    cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
    names = sql.SQL(", ").join(sql.Identifier(table.name) for table in tables)
    cursor.execute(sql.SQL("LOCK TABLE {} IN EXCLUSIVE MODE").format(names))


def _check_fits(cursor: Any, manifest: Manifest, tables: list[Table]) -> None:
    """The archive must come from a database of the same form."""
    here, there = set(migrations_applied(cursor)), set(manifest.migrations)
    if here != there:
        differing = ", ".join(sorted(here ^ there))
        raise RestoreError(
            f"The backup was made by version {manifest.product_version}, whose tables differ "
            f"(migrations: {differing}). Restore it with that version, then upgrade."
        )
    columns = {table.name: list(table.columns) for table in tables}
    if columns != {name: member.columns for name, member in manifest.tables.items()}:
        raise RestoreError(
            f"The backup was made by version {manifest.product_version}, whose tables have other "
            "columns. Restore it with that version."
        )


def _check_empty(cursor: Any, tables: list[Table]) -> None:
    full = [table.name for table in tables if _holds_data(cursor, table)]
    if full:
        raise RestoreError(
            f"This database holds data already, in {', '.join(full)}. A backup is restored into "
            "an empty one, and never over another: set DATA_DIR or DATABASE_URL to a new one."
        )


def _holds_data(cursor: Any, table: Table) -> bool:
    if table.name in OF_A_FRESH_DATABASE:
        return False
    mine = sql.SQL("true")
    if table.name == "auth_user":
        mine = sql.SQL("(username <> 'admin' OR last_login IS NOT NULL)")
    query = sql.SQL("SELECT 1 FROM {} WHERE {} LIMIT 1").format(sql.Identifier(table.name), mine)
    cursor.execute(query)
    return cursor.fetchone() is not None


def _empty(cursor: Any, tables: list[Table]) -> None:
    for table in tables:
        if table.name in OF_A_FRESH_DATABASE or table.name == "auth_user":
            cursor.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.name)))


def _copy_in(cursor: Any, archive: ArchiveReader, table: Table, count: RowCount) -> None:
    with cursor.copy(table.copy_in()) as copy:
        for block in archive.blocks(archive.manifest.tables[table.name]):
            copy.write(block)
            count.add(block)


def _set_sequences(cursor: Any, manifest: Manifest) -> None:
    for name, (value, used) in manifest.sequences.items():
        cursor.execute("SELECT setval(%s, %s, %s)", [name, value, used])


def _check_same(cursor: Any, manifest: Manifest, table: Table, count: RowCount) -> None:
    """What stands in the table now must be what stood in the one that was backed up."""
    digest = hashlib.sha256()
    for block in rows_of(table, cursor):
        digest.update(block)
        count.add(block)
    if digest.hexdigest() != manifest.tables[table.name].sha256:
        raise RestoreError(
            f"{table.name} did not come back as it was backed up; nothing was restored. "
            "Does this PostgreSQL write values in another form than the one of the backup?"
        )
