"""Put a backup into an empty database."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from memoryproject.foundation.audit.rewriting import log_set_aside, log_write
from memoryproject.foundation.audit.wiring import log_path
from memoryproject.foundation.integrations.media_storage.storage_choice import (
    configured_media_storage,
)
from memoryproject.foundation.process.progress import ProgressBar
from sessions_app.backup.dependencies import access_of, add_access_arguments
from sessions_app.backup.keys import keys_write
from sessions_app.backup.manifest import ArchiveError
from sessions_app.backup.restore import backup_restore
from sessions_app.backup.restore_checks import RestoreError, others_connected

NOT_SIGNED = (
    "WARNING: the archive was not signed with this installation's BACKUP_KEY. Before you let "
    "others reach the server, check its accounts, API tokens and webhook endpoints: somebody may "
    "have added their own."
)


class Command(BaseCommand):
    """All or nothing: a restore that fails or is killed leaves the database as it was."""

    help = (
        "Check a backup and its signature, then put all of it into the database, which must be "
        "empty (what `make run` puts into a fresh one gives way). Stop the server first. Every "
        "table is read back and compared before anything counts."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="The archive.")
        parser.add_argument(
            "--without-keys",
            action="store_true",
            help="Keep the keys in DATA_DIR instead of the backup's.",
        )
        parser.add_argument(
            "--without-media",
            action="store_true",
            help="Leave out the files of messages that the backup holds.",
        )
        add_access_arguments(parser)
        parser.add_argument("--json", action="store_true", help="Print the report as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]

        def write_keys(keys: Mapping[str, bytes]) -> None:
            if not options["without_keys"]:
                keys_write(settings.DATA_DIR, keys)

        try:
            restored = backup_restore(
                path=path,
                access=access_of(options),
                make_tables=self._make_tables,
                write_keys=write_keys,
                progress=ProgressBar(sys.stderr),
                media=None if options["without_media"] else configured_media_storage(),
            )
        except (ArchiveError, RestoreError) as error:
            raise CommandError(str(error)) from error
        except (DatabaseError, OSError) as error:
            raise CommandError(f"Nothing was restored: {error}".strip()) from error
        self._write_log()
        report = restored.report
        if not restored.is_signed:
            self.stderr.write(NOT_SIGNED)
        if options["json"]:
            self.stdout.write(json.dumps({**report.as_dict(), "files": restored.files}))
            return
        files = f" and {restored.files} files of messages" if restored.files else ""
        self.stdout.write(
            f"{report.rows} rows of {report.tables} tables{files} were restored from {path}. "
            "Start the server: make run"
        )

    def _make_tables(self) -> None:
        if others := others_connected():
            self.stderr.write(
                f"{others} other connections to this database are open: the server and the "
                "workers should be stopped."
            )
        call_command("migrate", verbosity=0, interactive=False)
        call_command("createcachetable", verbosity=0)

    def _write_log(self) -> None:
        """Write the log file of the restored database; move a log of another database aside."""
        try:
            aside = log_set_aside(log_path=log_path(), name="before-restore")
            log_write(log_path=log_path())
        except OSError as error:
            self.stderr.write(
                f"The audit log file can't be written: {error}. Once it can, run `manage.py "
                "audit_verify --write-log`."
            )
        else:
            if aside is not None:
                self.stderr.write(f"The audit log file that was here is now {aside}.")
