"""Put a backup into an empty database."""

import hashlib
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from psycopg import sql
from psycopg.errors import LockNotAvailable

from memoryproject.folders import START
from memoryproject.foundation import commands, leases
from memoryproject.foundation.audit import audit_events, chain
from memoryproject.foundation.integrations.media_storage import storage_choice
from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from sessions_app.backup import archive_writer, restore_checks, write
from sessions_app.backup.archive import ArchiveAccess, ArchiveError, ArchiveReader, Manifest
from sessions_app.backup.dependencies import ACCESS, access_of
from sessions_app.models import Broadcast
from sessions_app.models.takeover import BroadcastState
from sessions_app.stored_settings import is_set_elsewhere, stored_problems, stored_settings_look

NOT_SIGNED = (
    "WARNING: the archive was not signed with this installation's BACKUP_KEY. Before you let "
    "others reach the server, check its accounts, API tokens and webhook endpoints: somebody may "
    "have added their own."
)


class Command(commands.ReportingCommand):
    """All or nothing: a restore that fails or is killed leaves the database as it was."""

    refusals = {
        ArchiveError: "{error}",
        restore_checks.RestoreError: "{error}",
        DatabaseError: "Nothing was restored: {error}",
        OSError: "Nothing was restored: {error}",
    }

    arguments = [
        commands.option("file", type=Path, metavar="FILE"),
        commands.flag("--without-keys"),
        commands.flag("--without-media"),
        *ACCESS,
    ]

    def run(self, options: dict[str, Any]) -> None:
        path: Path = options["file"]

        written: set[str] = set()

        def write_keys(keys: Mapping[str, bytes]) -> None:
            if not options["without_keys"]:
                write.keys_write(settings.DATA_DIR, keys)
                written.update(keys)

        restored = backup_restore(
            path=path,
            access=access_of(options),
            make_tables=self._make_tables,
            write_keys=write_keys,
            progress=commands.ProgressBar(sys.stderr),
            media=None if options["without_media"] else storage_choice.configured_media_storage(),
        )
        self._write_log()
        report = restored.report
        if not restored.is_signed:
            self.stderr.write(NOT_SIGNED)
        if "secret.key" not in written or is_set_elsewhere("SECRET_KEY"):
            stored_settings_look(at_once=True)
            for problem in stored_problems().values():
                self.stderr.write(problem)
        files = f" and {restored.files} files of messages" if restored.files else ""
        self.report(
            options,
            {**report.as_dict(), "files": restored.files},
            f"{report.rows} rows of {report.tables} tables{files} were restored from {path}. "
            f"Start the server: {START}",
        )

    def _make_tables(self, older: "Sequence[Node]") -> None:
        if others := restore_checks.others_connected():
            self.stderr.write(
                f"{others} other connections to this database are open: the server and the "
                "workers should be stopped."
            )
        if older:
            restore_checks.remove_newer_tables(older)
            MigrationExecutor(connection).migrate(older)
        else:
            call_command("migrate", verbosity=0, interactive=False)
        call_command("createcachetable", verbosity=0)

    def _write_log(self) -> None:
        """Write the log file of the restored database; move a log of another database aside."""
        try:
            aside = chain.log_set_aside(log_path=audit_events.log_path(), name="before-restore")
            chain.log_write(log_path=audit_events.log_path())
        except OSError as error:
            self.stderr.write(
                f"The audit log file can't be written: {error}. Once it can, run `manage.py "
                "audit_verify --write-log`."
            )
        else:
            if aside is not None:
                self.stderr.write(f"The audit log file that was here is now {aside}.")


# Restore a backup into an empty database.

logger = logging.getLogger(__name__)

# An arbitrary lock number that nothing else uses.
_LOCK = 0x2E5708E
LOCK_TIMEOUT = "10s"

WriteKeys = Callable[[Mapping[str, bytes]], None]
# The app and the name of a migration.
Node = tuple[str, str]


@dataclass(frozen=True)
class Restored:
    """A finished restore.

    ``is_signed``: the archive had a valid signature. ``files``: how many files of messages were
    put back.
    """

    report: write.Report
    is_signed: bool
    files: int = 0


def backup_restore(
    *,
    path: Path,
    access: ArchiveAccess,
    make_tables: Callable[[Sequence[Node]], None],
    write_keys: WriteKeys,
    progress: Callable[[int, int], None],
    media: MediaStorage | None = None,
) -> Restored:
    """Verify the whole archive, then restore it into the database, which must be empty.

    ``make_tables`` is called after all checks have passed: with the last migrations of an older
    version if one made the backup, and at the end with none, to make the tables of this version.
    The rows are written in one transaction: a killed process leaves the tables unchanged. Before
    the commit every table is read back and compared with the archive, and ``write_keys`` gets the
    archive's keys. ``media``: the storage into which the archive's files of messages are put; None:
    they aren't. Raises
    ArchiveError, RestoreError, DatabaseError and OSError; then nothing was restored.
    """
    with ArchiveReader(path, access=access) as archive:
        archive.check_all()
        manifest = archive.manifest
        restore_checks.check_no_jobs(manifest)
        # Also while the first one creates the tables.
        with leases.advisory_lock(
            _LOCK, restore_checks.RestoreError("Another restore is at work in this database.")
        ):
            state = restore_checks.state_of(manifest)
            with connection.cursor() as cursor:
                restore_checks.check_empty(cursor)
            make_tables(state.older)
            with archive_writer.media_put_back(archive, media) as files:
                _put_back(archive, state, write_keys, progress)
            if state.older:
                _upgrade(manifest, make_tables)
    ContentType.objects.clear_cache()
    # Whom they reached since the backup isn't known here: staff decide whether they go on.
    Broadcast.objects.filter(state=BroadcastState.RUNNING).update(state=BroadcastState.PAUSED)
    report = write.report_of(path, manifest)
    logger.info("A backup was restored: %d rows of %d tables.", report.rows, report.tables)
    return Restored(report, is_signed=archive.is_signed, files=files)


def _upgrade(manifest: Manifest, make_tables: Callable[[Sequence[Node]], None]) -> None:
    """Bring the restored rows of an older version up to date."""
    try:
        make_tables([])
    except DatabaseError as error:
        raise restore_checks.RestoreError(
            f"All rows were restored, as version {manifest.product_version} had them, but they "
            f"can't be brought up to date: {error}. Once that is mended, run `manage.py prepare`."
        ) from error
    _record(manifest)


def _put_back(
    archive: ArchiveReader,
    state: restore_checks.State,
    write_keys: WriteKeys,
    progress: Callable[[int, int], None],
) -> None:
    """Restore the rows in one transaction."""
    manifest = archive.manifest
    tables = state.tables
    try:
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            restore_checks.use_fixed_form(cursor)
            _lock(cursor, tables)
            # Check again: from here on nobody can change the tables.
            restore_checks.check_applied(manifest, write.migrations_applied(cursor))
            restore_checks.check_form(manifest, tables)
            restore_checks.check_empty(cursor)
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
            _empty(cursor, tables)
            # Each row is written once and read once.
            count = write.RowCount(progress, 2 * manifest.rows)
            for table in tables:
                _copy_in(cursor, archive, table, count)
            _set_sequences(cursor, manifest)
            for table in tables:
                _check_same(cursor, manifest, table, count)
            # Errors of the commit occur here, before any key is replaced.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            count.finish()
            if not state.older:
                _record(manifest)
            write_keys({name: b"".join(archive.blocks(key)) for name, key in manifest.keys.items()})
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise restore_checks.RestoreError(
                "The database is in use. Stop the server and the workers, then try again."
            ) from error
        raise


def _record(manifest: Manifest) -> None:
    """Record the restore. A worker seals it later, with the restored key."""
    details = {"made_at": manifest.created_at, "rows": manifest.rows}
    event = audit_events.Event(
        "backup.restore", audit_events.COMMAND_LINE, "backup", details=details
    )
    audit_events.audit_record_many(events=[event], seal=False)


def _lock(cursor: Any, tables: list[restore_checks.Table]) -> None:
    """Block other writers until the end."""
    cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
    names = sql.SQL(", ").join(sql.Identifier(table.name) for table in tables)
    cursor.execute(sql.SQL("LOCK TABLE {} IN EXCLUSIVE MODE").format(names))


def _empty(cursor: Any, tables: list[restore_checks.Table]) -> None:
    with chain.removal_allowed():
        for table in tables:
            if (
                table.name in restore_checks.OF_A_FRESH_DATABASE
                or table.name in restore_checks.DATA_WHERE
            ):
                cursor.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.name)))


def _copy_in(
    cursor: Any, archive: ArchiveReader, table: restore_checks.Table, count: write.RowCount
) -> None:
    with connection.wrap_database_errors, cursor.copy(table.copy_in()) as copy:
        for block in archive.blocks(archive.manifest.tables[table.name]):
            copy.write(block)
            count.add(block)


def _set_sequences(cursor: Any, manifest: Manifest) -> None:
    for name, (value, used) in manifest.sequences.items():
        cursor.execute("SELECT setval(%s, %s, %s)", [name, value, used])


def _check_same(
    cursor: Any, manifest: Manifest, table: restore_checks.Table, count: write.RowCount
) -> None:
    """Check that the restored table is equal to the one in the backup."""
    digest = hashlib.sha256()
    with restore_checks.rows_of(table, cursor) as rows:
        for block in rows:
            digest.update(block)
            count.add(block)
    if digest.hexdigest() != manifest.tables[table.name].sha256:
        raise restore_checks.RestoreError(
            f"{table.name} did not come back as it was backed up; nothing was restored. "
            "Does this PostgreSQL write values in another form than the one of the backup?"
        )
