"""Import opening hours, prices, questions or facts from a table."""

import sys
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.commands import ReportingCommand, UsageError, flag, option
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.embedding.facade import embedder
from sessions_app.memories.tables.columns import KINDS, MAX_BYTES, TableError, text_of
from sessions_app.memories.tables.plan import (
    CURRENCIES,
    INVALID,
    SAME,
    VISIBILITIES,
    Choices,
    Plan,
    Planned,
    table_import,
    table_plan,
)

NOTHING = "Nothing was stored: {error}"


class Command(ReportingCommand):
    """Can be run again at any time: what is known already stays as it is."""

    json_help = ""
    fills_memory = True
    refusals = {EmbedderError: NOTHING, DatabaseError: NOTHING}

    arguments = [
        option("file", metavar="FILE"),
        option("--kind", choices=list(KINDS), default=""),
        option("--visibility", choices=VISIBILITIES, default=VISIBILITIES[0]),
        option("--currency", choices=CURRENCIES, default=""),
        flag("--dry-run"),
    ]

    def run(self, options: dict[str, Any]) -> None:
        choices = Choices(options["kind"], options["visibility"], options["currency"])
        now = timezone.localtime(timezone.now(), ZoneInfo(settings.BUSINESS_TIME_ZONE))
        try:
            plan = table_plan(text_of(_content(options["file"])), choices, now=now)
        except TableError as error:
            raise UsageError(str(error)) from error
        for row in plan.rows:
            self.stdout.write(_line(row))
        if plan.unused:
            self.stdout.write(f"These columns aren't used: {', '.join(plan.unused)}.")
        if not options["dry_run"]:
            self._store(plan)
        invalid = plan.counts[INVALID]
        if invalid:
            raise CommandError(f"{invalid} of the rows can't be used: see above.")

    def _store(self, plan: Plan) -> None:
        done = table_import(plan=plan, embedder=embedder(), actor=COMMAND_LINE)
        self.stdout.write(
            f"{len(done.added)} new, {len(done.replaced)} replaced, {done.known} known already, "
            f"{done.invalid} can't be used."
        )


def _content(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with Path(name).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{name} can't be read: {error.strerror}.") from error


def _line(row: Planned) -> str:
    rows = ", ".join(map(str, row.entry.rows))
    text = " ".join(row.entry.text.split())
    line = f"{row.status:9} row {rows}: {text}"
    if row.entry.problem:
        return f"{line} ({row.entry.problem})"
    if row.status == SAME:
        return line
    return "\n".join([line, *(f"{'':10}now: {older.content}" for older in row.older)])
