"""Write the whole database into one archive."""

import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from memoryproject import __version__
from memoryproject.foundation.commands import ProgressBar, ReportingCommand, flag, option
from memoryproject.foundation.integrations.media_storage import storage_choice
from sessions_app.backup.archive import (
    ArchiveError,
    ArchiveReader,
    identity_create,
    recipients_parsed,
)
from sessions_app.backup.dependencies import ACCESS, access_of, archive_access
from sessions_app.backup.write import Report, backup_write, keys_read, report_of


class Command(ReportingCommand):
    """The archive holds everything that people wrote: keep it as safe as the database."""

    refusals = {
        ArchiveError: "{error}",
        DatabaseError: "No backup was written: {error}",
        OSError: "No backup was written: {error}",
    }

    arguments = [
        option("file", type=Path, metavar="FILE"),
        flag("--verify"),
        flag("--without-keys"),
        flag("--media"),
        option("--recipient", action="append", default=[], metavar="PUBLIC_KEY"),
        flag("--new-identity"),
        *ACCESS,
    ]

    def run(self, options: dict[str, Any]) -> None:
        path: Path = options["file"]
        if options["new_identity"]:
            self.stdout.write(identity_create(path))
            return
        recipients_parsed(options["recipient"])
        report = self._verify(path, options) if options["verify"] else self._write(path, options)
        verb = "is whole" if options["verify"] else "was written and read back"
        self.report(options, report.as_dict(), _render_report(report, verb))

    def _verify(self, path: Path, options: dict[str, Any]) -> Report:
        with ArchiveReader(path, access=access_of(options)) as archive:
            archive.check_all()
            if not archive.is_signed:
                self.stderr.write("WARNING: it is not signed with this installation's BACKUP_KEY.")
            return report_of(path, archive.manifest)

    def _write(self, path: Path, options: dict[str, Any]) -> Report:
        return backup_write(
            path=path,
            keys={} if options["without_keys"] else keys_read(settings.DATA_DIR),
            product_version=__version__,
            now=timezone.now(),
            access=archive_access(),
            recipients=options["recipient"],
            media=storage_choice.configured_media_storage() if options["media"] else None,
            progress=ProgressBar(sys.stderr),
        )


def _render_report(report: Report, verb: str) -> str:
    files = f"{report.files} files of messages, " if report.files else ""
    return (
        f"{report.path} {verb}: {report.rows} rows of {report.tables} tables, {files}"
        f"{report.size} bytes, SHA-256 {report.sha256}."
    )
