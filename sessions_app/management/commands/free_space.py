"""Free space on the disk."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone
from django_q.models import Task

from memoryproject.foundation.commands import ReportingCommand, UsageError, flag, option
from sessions_app.models import AnswerTrial, InboundDelivery, TurnReplay

MEGABYTE = 1024 * 1024


class Command(ReportingCommand):
    arguments = [option("--days", type=int, default=30), flag("--dry-run")]

    def run(self, options: dict[str, Any]) -> None:
        if options["days"] < 0:
            raise UsageError("--days must be 0 or more.")
        freed = space_free(
            now=timezone.now(),
            older_than=timedelta(days=options["days"]),
            dry_run=options["dry_run"],
        )
        self.report(options, freed, _render_result(freed, dry_run=options["dry_run"]))


def _render_result(freed: dict[str, int], *, dry_run: bool) -> str:
    verb = "would be" if dry_run else "were"
    return (
        f"{freed['deliveries']} raw bodies and {freed['replays']} replays {verb} emptied, "
        f"{freed['trials']} trials and {freed['task_results']} job results dropped. The database "
        f"has {freed['bytes_after'] // MEGABYTE} MB now, {freed['bytes_before'] // MEGABYTE} MB "
        "before."
    )


# Free disk space without losing conversations (RECOVERY-003).

logger = logging.getLogger(__name__)

BATCH = 500

Change: TypeAlias = Callable[[QuerySet[Any]], object]


def space_free(*, now: datetime, older_than: timedelta, dry_run: bool = False) -> dict[str, int]:
    """Empty old provider bodies and replay records; delete old trials and results of jobs.

    Bodies and replay records are emptied if they are older than ``older_than``. Messages,
    summaries and memories stay, and the model, tokens and timings of a replay record.

    Return how many rows it was of each kind, and the size of the database before and after. It
    works on a full disk: space of dead rows is released first, and after each batch.
    """
    limit = now - older_than
    deliveries = InboundDelivery.objects.filter(received_at__lt=limit, raw__isnull=False)
    finished = TurnReplay.objects.filter(turn__finished_at__lt=limit)
    replays = finished.exclude(prompt=[], recalled=[])
    old: dict[str, tuple[QuerySet[Any], Change]] = {
        "deliveries": (deliveries, lambda rows: rows.update(raw=None)),
        "replays": (replays, lambda rows: rows.update(prompt=[], recalled=[], left_out={})),
        "trials": (AnswerTrial.objects.filter(created_at__lt=limit), QuerySet.delete),
        "task_results": (Task.objects.filter(stopped__lt=limit), QuerySet.delete),
    }
    before = _database_size()
    if dry_run:
        counts = {name: rows.count() for name, (rows, _change) in old.items()}
        return {**counts, "bytes_before": before, "bytes_after": before}
    _vacuum()
    counts = {name: _in_batches(rows, change) for name, (rows, change) in old.items()}
    text = "Space was freed: %d deliveries, %d replays, %d trials, %d job results."
    logger.info(text, *counts.values())
    return {**counts, "bytes_before": before, "bytes_after": _database_size()}


def _in_batches(rows: QuerySet[Any], change: Change) -> int:
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
