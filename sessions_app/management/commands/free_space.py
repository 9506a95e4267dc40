"""Free space on the disk."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone
from django_q.models import Task

from memoryproject.foundation.commands import ReportingCommand, UsageError, flag, option
from sessions_app.models import AnswerTrial, InboundDelivery, TurnReplay

MEGABYTE = 1024 * 1024


class Command(ReportingCommand):
    help = (
        "Free space on the disk, also on one that is full: empties the providers' raw bodies "
        "and the replays of answers (the prompts that were sent, and what was recalled) older "
        "than --days, and drops trials of answers and results of finished jobs. Messages, "
        "summaries and memories stay."
    )

    arguments = [
        option("--days", type=int, default=30, help="Keep what is younger. Default: %(default)s"),
        flag("--dry-run", "Only tell how many rows it would be."),
    ]

    def run(self, options: dict[str, Any]) -> None:
        if options["days"] < 0:
            raise UsageError("--days must be 0 or more.")
        freed = space_free(
            now=timezone.now(),
            older_than=timedelta(days=options["days"]),
            dry_run=options["dry_run"],
        )
        self.report(options, asdict(freed), _render_result(freed, dry_run=options["dry_run"]))


def _render_result(freed: Freed, *, dry_run: bool) -> str:
    verb = "would be" if dry_run else "were"
    return (
        f"{freed.deliveries} raw bodies and {freed.replays} replays {verb} emptied, "
        f"{freed.trials} trials and {freed.task_results} job results dropped. The database has "
        f"{freed.bytes_after // MEGABYTE} MB now, {freed.bytes_before // MEGABYTE} MB before."
    )


# Free disk space without losing conversations (RECOVERY-003).

logger = logging.getLogger(__name__)

BATCH = 500


@dataclass(frozen=True)
class Freed:
    """The numbers of emptied and deleted rows, and the size of the database before and after.

    ``trials``: of answers, deleted.
    """

    deliveries: int
    replays: int
    trials: int
    task_results: int
    bytes_before: int
    bytes_after: int


def space_free(*, now: datetime, older_than: timedelta, dry_run: bool = False) -> Freed:
    """Empty old provider bodies and replay records; delete old trials and results of jobs.

    Bodies and replay records are emptied if they are older than ``older_than``. Messages,
    summaries and memories stay, and the model, tokens and timings of a replay record.

    It works on a full disk: space of dead rows is released first, and after each batch.
    """
    limit = now - older_than
    deliveries = InboundDelivery.objects.filter(received_at__lt=limit, raw__isnull=False)
    finished = TurnReplay.objects.filter(turn__finished_at__lt=limit)
    replays = finished.exclude(prompt=[], recalled=[])
    trials = AnswerTrial.objects.filter(created_at__lt=limit)
    results = Task.objects.filter(stopped__lt=limit)
    before = _database_size()
    if dry_run:
        return Freed(
            deliveries.count(), replays.count(), trials.count(), results.count(), before, before
        )
    _vacuum()
    freed = (
        _in_batches(deliveries, lambda rows: rows.update(raw=None)),
        _in_batches(replays, lambda rows: rows.update(prompt=[], recalled=[], left_out={})),
        _in_batches(trials, lambda rows: rows.delete()[0]),
        _in_batches(results, lambda rows: rows.delete()[0]),
    )
    logger.info("Space was freed: %d deliveries, %d replays, %d trials, %d job results.", *freed)
    return Freed(*freed, before, _database_size())


def _in_batches(rows: QuerySet, change: Callable[[QuerySet], int]) -> int:  # type: ignore[type-arg]
    done = 0
    while keys := list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        change(rows.model._default_manager.filter(pk__in=keys))
        done += len(keys)
        _vacuum()
    return done


def _vacuum() -> None:
    """Release the space of dead rows, to the disk if it is at the end of a table."""
    with connection.cursor() as cursor:
        for model in (InboundDelivery, TurnReplay, AnswerTrial, Task):
            name = connection.ops.quote_name(model._meta.db_table)
            cursor.execute(f"VACUUM (TRUNCATE) {name}")


def _database_size() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])
