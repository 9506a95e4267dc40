"""Write the whole database into one archive."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils import timezone

from memoryproject import __version__
from memoryproject.foundation.process.progress import ProgressBar
from sessions_app.backup.archive import ArchiveError, verify
from sessions_app.backup.keys import keys_read
from sessions_app.backup.write import Report, backup_write, report_of


class Command(BaseCommand):
    """The archive holds everything that people wrote: keep it as safe as the database."""

    help = (
        "Write all of the database, as it is at this moment, into one archive (a zip file of "
        "mode 600 with a checksum for each table), and read it back. The server may go on "
        "meanwhile. A file that exists is never replaced."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="The archive.")
        parser.add_argument(
            "--verify", action="store_true", help="Only check FILE, without a database."
        )
        parser.add_argument(
            "--without-keys",
            action="store_true",
            help="Leave out secret.key and audit.key of DATA_DIR.",
        )
        parser.add_argument("--json", action="store_true", help="Print the report as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            if options["verify"]:
                report = report_of(path, verify(path))
            else:
                report = self._write(path, with_keys=not options["without_keys"])
        except ArchiveError as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(f"The database can't be read: {error}".strip()) from error
        if options["json"]:
            self.stdout.write(json.dumps(report.as_dict()))
            return
        verb = "is whole" if options["verify"] else "was written and read back"
        self.stdout.write(_render_report(report, verb))

    def _write(self, path: Path, *, with_keys: bool) -> Report:
        return backup_write(
            path=path,
            keys=keys_read(settings.DATA_DIR) if with_keys else {},
            product_version=__version__,
            now=timezone.now(),
            progress=ProgressBar(sys.stderr),
        )


def _render_report(report: Report, verb: str) -> str:
    return (
        f"{report.path} {verb}: {report.rows} rows of {report.tables} tables, "
        f"{report.size} bytes, SHA-256 {report.sha256}."
    )
