"""Prove that a backup can be restored: restore it into a scratch folder and check what is there.

The scratch database is the embedded PostgreSQL, in a folder of its own, whatever database the
server uses. It is removed at the end.
"""

import json
import os
import subprocess
import tempfile
from io import StringIO
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError

from memoryproject import checks, folders
from memoryproject.foundation.commands import ReportingCommand, option
from sessions_app.backup.dependencies import ACCESS

SHOWN_OF_OUTPUT = 2_000


class Command(ReportingCommand):
    """The server may run meanwhile; its database is only read."""

    requires_system_checks = (checks.SETTINGS,)

    json_help = "Print the result as JSON."
    refusals = {OSError: "The drill failed. {error}"}

    arguments = [
        option("file", type=Path, nargs="?", metavar="FILE"),
        option("--scratch", type=Path, metavar="DIR"),
        option("--restore-option", action="append", default=[], metavar="OPTION"),
        *ACCESS,
    ]

    def run(self, options: dict[str, Any]) -> None:
        for name in ("file", "scratch", "identity"):
            path = options[name]
            if path is not None and not path.exists():
                raise CommandError(f"There is no {path}.")
        with tempfile.TemporaryDirectory(prefix="restore-drill-", dir=options["scratch"]) as folder:
            drill = self._drill(Path(folder), options)
        self.report(
            options,
            drill,
            f"The backup can be restored: {drill['rows']} rows of {drill['tables']} tables. "
            f"Audit chain: {drill['audit']}",
        )

    def _drill(self, folder: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Restore FILE, or a backup that is made now, into ``folder``; return what was restored.

        Raises CommandError with the name of the step that failed.
        """
        archive: Path | None = options["file"]
        if archive is None:
            self._announce("Make a backup")
            archive = folder / "drill.zip"
            _manage_here("Make a backup", "backup", str(archive))
        # The commands run in another folder.
        source = [*_access_options(options), str(archive.resolve())]
        self._announce("Verify the archive")
        written = json.loads(_manage_here("Verify", "backup", "--verify", "--json", *source))
        self._announce("Restore it into a scratch folder")
        environment = _environment(folder)
        words = ["restore", "--json", *options["restore_option"], *source]
        restored = json.loads(_manage("Restore", environment, *words))
        if restored["rows"] != written["rows"] or restored["tables"] != written["tables"]:
            raise CommandError(
                f"The drill failed. {restored['rows']} rows of {restored['tables']} tables were "
                f"restored, but the archive has {written['rows']} rows of {written['tables']} "
                "tables."
            )
        self._announce("Check the tables and the audit chain")
        _manage("Check the tables", environment, "migrate", "--check")
        audit = _manage("Check the audit chain", environment, "audit_verify").strip()
        return {
            "archive": str(archive),
            "rows": restored["rows"],
            "tables": restored["tables"],
            "audit": next(reversed(audit.splitlines()), ""),
        }

    def _announce(self, step: str) -> None:
        self.stderr.write(f"{step} …")


def _access_options(options: dict[str, Any]) -> list[str]:
    """Return the access options for the commands that read the archive."""
    words = ["--trust"] if options["trust"] else []
    identity: Path | None = options["identity"]
    return words if identity is None else [*words, "--identity", str(identity.resolve())]


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of an installation in ``folder`` with a database of its own."""
    # The key that signs backups is not in them.
    signing = str(getattr(settings, "BACKUP_KEY", ""))
    return {
        **os.environ,
        **({"BACKUP_KEY": signing} if signing else {}),
        "DATA_DIR": str(folder / "data"),
        "LOG_DIR": str(folder / "logs"),
        # An empty value counts as unset, and wins over .env.
        "DATABASE_URL": "",
        "MEDIA_STORAGE": "",
        "MEMORY_CONFIG": "",
    }


def _manage_here(step: str, *words: str) -> str:
    """Run a command of manage.py and return what it printed. Raises CommandError."""
    printed = StringIO()
    try:
        call_command(*words, stdout=printed, stderr=StringIO())
    except CommandError as error:
        raise CommandError(f"The drill failed. {step} failed: {error}") from error
    return printed.getvalue()


def _manage(step: str, environment: dict[str, str], *words: str) -> str:
    """Run a command of manage.py in another installation, likewise."""
    done = subprocess.run(  # noqa: S603 our own program
        [*folders.MANAGE, *words],
        env=environment,
        cwd=folders.HOME,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        output = (done.stderr.strip() or done.stdout.strip())[-SHOWN_OF_OUTPUT:]
        raise CommandError(f"The drill failed. {step} failed: {output}")
    return done.stdout
