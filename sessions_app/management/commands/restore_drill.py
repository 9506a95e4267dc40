"""Prove that a backup can be restored."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from memoryproject.checks import SETTINGS
from sessions_app.backup.dependencies import add_access_arguments
from sessions_app.backup.restore_drill import DrillError, restore_drill


class Command(BaseCommand):
    """The server may run meanwhile; its database is only read."""

    requires_system_checks = (SETTINGS,)

    help = (
        "Prove that a backup can be restored: make one (or take FILE), restore it into a scratch "
        "folder with a PostgreSQL of its own, compare the number of rows, verify the audit chain, "
        "and remove everything. Exits with 1 if any step fails."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file",
            type=Path,
            nargs="?",
            metavar="FILE",
            help="A backup, such as the newest of the schedule. Default: one that is made now.",
        )
        parser.add_argument(
            "--scratch",
            type=Path,
            metavar="DIR",
            help="Where the scratch folder is made; it needs as much space as the database. "
            "Default: the system's folder for temporary files.",
        )
        parser.add_argument(
            "--restore-option",
            action="append",
            default=[],
            metavar="OPTION",
            help="An option for the command restore, such as --restore-option=--without-keys.",
        )
        add_access_arguments(parser)
        parser.add_argument("--json", action="store_true", help="Print the result as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ("file", "scratch", "identity"):
            path = options[name]
            if path is not None and not path.exists():
                raise CommandError(f"There is no {path}.")
        # The key that signs backups is not in them.
        signing = str(getattr(settings, "BACKUP_KEY", ""))
        try:
            drill = restore_drill(
                archive=options["file"],
                keys={"BACKUP_KEY": signing} if signing else {},
                access_options=access_options(options),
                restore_options=options["restore_option"],
                scratch=options["scratch"],
                report=lambda step: self.stderr.write(f"{step} …"),
            )
        except (DrillError, OSError) as error:
            raise CommandError(f"The drill failed. {error}") from error
        if options["json"]:
            self.stdout.write(json.dumps(drill.as_dict()))
            return
        self.stdout.write(
            f"The backup can be restored: {drill.rows} rows of {drill.tables} tables. "
            f"Audit chain: {drill.audit}"
        )


def access_options(options: dict[str, Any]) -> list[str]:
    """Return the access options for the commands that read the archive."""
    words = ["--trust"] if options["trust"] else []
    identity: Path | None = options["identity"]
    return words if identity is None else [*words, "--identity", str(identity.resolve())]
