"""Merge the chats that one person has under several spellings of the id."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from sessions_app.inbound.merge_doubles import DoublesReport, doubles_merge


class Command(BaseCommand):
    """Run the command. It can be run again at any time."""

    help = (
        "Merge chats whose ids are spellings of one id, such as +15550100123@c.us and "
        "15550100123@c.us, into the oldest one, with everything in them; and give each chat the "
        "stored form of its id. It can't be undone: see --dry-run. Exits with 1 when a chat was "
        "left alone, and says why."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="Tell what would happen; change nothing."
        )
        parser.add_argument("--json", action="store_true", help="Print the report as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = doubles_merge(dry_run=options["dry_run"])
        except DatabaseError as error:
            text = f"The database refused: {error}".strip()
            raise CommandError(f"{text} Run it again to go on.") from error
        shown = json.dumps(report.as_dict(), indent=2, ensure_ascii=False)
        self.stdout.write(shown if options["json"] else as_text(report))
        if report.left_alone:
            raise CommandError(f"{len(report.left_alone)} left alone: see the report.")


def as_text(report: DoublesReport) -> str:
    """Return the report as text."""
    lines = ["Nothing was changed (--dry-run). It would be:"] if report.dry_run else []
    lines.append(f"{len(report.merged)} merged, {len(report.renamed)} renamed")
    lines += [f"  merged: {one.whatsapp_chat} into {one.stored}" for one in report.merged]
    lines += [f"  renamed: {one.whatsapp_chat} to {one.stored}" for one in report.renamed]
    lines += [f"  left alone: {one.whatsapp_chat}: {one.reason}" for one in report.left_alone]
    return "\n".join(lines)
