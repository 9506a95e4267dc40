"""Write a backup."""

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import DatabaseError, connection, transaction
from psycopg import sql

from memoryproject.foundation.audit.audit_events import COMMAND_LINE, audit_record
from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from memoryproject.foundation.process.storage import file_replaced
from sessions_app.backup.archive import BLOCK, ArchiveAccess, Manifest, Member
from sessions_app.backup.archive_writer import ArchiveWriter, kept_files, media_add
from sessions_app.backup.restore_checks import Table, all_tables, rows_of, sequences, use_fixed_form

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Report:
    """The result of a backup or restore.

    ``sha256`` is that of the archive; ``files``: the number of files of messages.
    """

    path: Path
    tables: int
    rows: int
    size: int
    sha256: str
    files: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "path": str(self.path)}


def backup_write(
    *,
    path: Path,
    keys: Mapping[str, bytes],
    product_version: str,
    now: datetime,
    access: ArchiveAccess,
    progress: Callable[[int, int], None],
    recipients: Sequence[str] = (),
    media: MediaStorage | None = None,
) -> Report:
    """Write a snapshot of the whole database into an archive at ``path``, signed.

    ``recipients``: the public keys for which it is encrypted; none: it isn't. ``media``: the
    storage of the files of messages, which the archive holds, too; None: it doesn't. Web server and
    workers may continue meanwhile. ``progress`` is called with the number of finished tables and
    their total. Raises ArchiveError and DatabaseError; then there is no
    file at ``path``.
    """
    with ArchiveWriter(path, access=access, recipients=recipients) as archive:
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            use_fixed_form(cursor)
            count = RowCount(progress, _estimated_rows(cursor))
            tables = {table.name: _add(archive, table, cursor, count) for table in all_tables()}
            migrations = migrations_applied(cursor)
            values = _sequence_values(cursor)
            cursor.execute("SHOW server_version")
            (postgres,) = cursor.fetchone()
            names = kept_files() if media is not None else []
        count.finish()
        manifest = Manifest(
            product_version=product_version,
            created_at=now.isoformat(),
            postgres=postgres,
            migrations=migrations,
            tables=tables,
            sequences=values,
            keys={name: archive.add(f"keys/{name}", [key]) for name, key in keys.items()},
            media=media_add(archive, media, names) if media is not None else {},
        )
        archive.publish(manifest)
    report = report_of(path, manifest)
    logger.info("The database was backed up: %d rows of %d tables.", report.rows, report.tables)
    _record(report)
    return report


def _record(report: Report) -> None:
    """Record the finished backup. The backup is valid also if the record can't be stored."""
    details: dict[str, Any] = {"rows": report.rows, "tables": report.tables}
    if report.files:
        details["files"] = report.files
    try:
        audit_record("backup.write", COMMAND_LINE, "backup", report.sha256, **details)
    except DatabaseError:
        logger.exception("The audit log could not be told of the backup %s.", report.sha256)


class RowCount:
    """Report to ``progress`` the number of finished rows and an estimate of the total."""

    def __init__(self, progress: Callable[[int, int], None], total: int) -> None:
        self._progress = progress
        self._total = max(total, 1)
        self._done = 0

    def add(self, block: bytes | bytearray) -> None:
        self._done += block.count(b"\n")
        self._progress(min(self._done, self._total - 1), self._total)

    def finish(self) -> None:
        self._progress(self._total, self._total)


def report_of(path: Path, manifest: Manifest) -> Report:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return Report(
        path=path,
        tables=len(manifest.tables),
        rows=manifest.rows,
        size=path.stat().st_size,
        sha256=digest.hexdigest(),
        files=len(manifest.media),
    )


def migrations_applied(cursor: Any) -> list[str]:
    cursor.execute("SELECT app || '.' || name FROM django_migrations ORDER BY 1")
    return [name for (name,) in cursor.fetchall()]


def _estimated_rows(cursor: Any) -> int:
    cursor.execute("SELECT coalesce(sum(n_live_tup), 0) FROM pg_stat_user_tables")
    return int(cursor.fetchone()[0])


def _add(archive: ArchiveWriter, table: Table, cursor: Any, count: RowCount) -> Member:
    with rows_of(table, cursor) as rows:
        blocks = _in_blocks(rows, count)
        return archive.add(f"tables/{table.name}.copy", blocks, columns=list(table.columns))


def _in_blocks(rows: Iterator[bytes], count: RowCount) -> Iterator[bytes]:
    """Join single rows to blocks, which compress faster."""
    buffer = bytearray()
    for row in rows:
        buffer += row
        if len(buffer) >= BLOCK:
            count.add(buffer)
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)


def _sequence_values(cursor: Any) -> dict[str, tuple[int, bool]]:
    values = {}
    for name in sequences(all_tables()):
        cursor.execute(sql.SQL("SELECT last_value, is_called FROM {}").format(sql.Identifier(name)))
        values[name] = cursor.fetchone()
    return values


# The keys of a database, which sign its logins and its audit log.

KEY_FILES = ("secret.key", "audit.key")


def keys_read(data_dir: Path) -> dict[str, bytes]:
    """Return the keys in ``data_dir`` by file name, without keys from the environment."""
    found = {name: data_dir / name for name in KEY_FILES}
    return {name: path.read_bytes() for name, path in found.items() if path.is_file()}


def keys_write(data_dir: Path, keys: Mapping[str, bytes]) -> None:
    """Replace the keys of the empty database with those of the backup."""
    for name in KEY_FILES:
        if name in keys:
            with file_replaced(data_dir / name) as file:
                file.write(keys[name])
