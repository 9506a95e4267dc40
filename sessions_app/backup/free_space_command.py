"""Free space on the disk."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils import timezone

from sessions_app.backup.free_space import Freed, space_free

MEGABYTE = 1024 * 1024


class Command(BaseCommand):
    help = (
        "Free space on the disk, also on one that is full: empties the providers' raw bodies "
        "and the replays of answers (the prompts that were sent, and what was recalled) older "
        "than --days, and drops trials of answers and results of finished jobs. Messages, "
        "summaries and memories stay."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--days", type=int, default=30, help="Keep what is younger. Default: %(default)s"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Only tell how many rows it would be."
        )
        parser.add_argument("--json", action="store_true", help="Print the report as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["days"] < 0:
            raise CommandError("--days must be 0 or more.", returncode=2)
        try:
            freed = space_free(
                now=timezone.now(),
                older_than=timedelta(days=options["days"]),
                dry_run=options["dry_run"],
            )
        except DatabaseError as error:
            raise CommandError(f"The database can't be used: {error}".strip()) from error
        if options["json"]:
            self.stdout.write(json.dumps(asdict(freed)))
        else:
            self.stdout.write(_render_result(freed, dry_run=options["dry_run"]))


def _render_result(freed: Freed, *, dry_run: bool) -> str:
    verb = "would be" if dry_run else "were"
    return (
        f"{freed.deliveries} raw bodies and {freed.replays} replays {verb} emptied, "
        f"{freed.trials} trials and {freed.task_results} job results dropped. The database has "
        f"{freed.bytes_after // MEGABYTE} MB now, {freed.bytes_before // MEGABYTE} MB before."
    )
