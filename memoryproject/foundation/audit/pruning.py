"""Delete old events behind a signed checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from memoryproject.foundation.audit.audit_logfile import AuditLogFile, Fields, seal_of
from memoryproject.foundation.audit.chain import (
    BEGINNING,
    ChainError,
    Place,
    chain_lock,
    checkpoint_add,
    checkpoint_is_signed,
    checkpoint_last,
    head_current,
    removal_allowed,
)
from memoryproject.foundation.audit.models import AuditCheckpoint, AuditEvent

logger = logging.getLogger(__name__)

AUDIT_RETENTION_DAYS = 90

CHANGED = (
    "Old audit events aren't pruned, because they were changed: that would hide it. Run "
    "`manage.py audit_verify`."
)


def audit_prune(*, key: str, log_path: Path, now: datetime, keep: timedelta) -> int:
    """Delete the events older than ``keep`` from the table and the log file; return how many.

    The remaining events still verify, starting at the checkpoint.

    Only events that verify are deleted. Raises ChainError if they don't, and OSError if the log
    file can't be written; its old lines are then deleted the next time.
    """
    with transaction.atomic():
        chain_lock()
        head_current(key=key)
        start = _start(key)
        pruned = _prune_rows(key, start, _last_old(start, now - keep, now), now)
    with transaction.atomic():
        chain_lock()
        last = checkpoint_last()
        if last is not None:
            AuditLogFile(log_path).drop(lambda seq: seq <= last.seq)
    if pruned:
        logger.info("%d audit events older than %d days were pruned.", pruned, keep.days)
    return pruned


def _start(key: str) -> Place:
    last = checkpoint_last()
    if last is None:
        return BEGINNING
    before = AuditCheckpoint.objects.filter(number__lt=last.number).order_by("-number").first()
    if not checkpoint_is_signed(last, key, before):
        raise ChainError(CHANGED)
    return Place(last.seq, last.seal)


def _last_old(start: Place, limit: datetime, now: datetime) -> int:
    """Return the number of the last old event before the first one that is kept.

    An event with a time in the future, from a wrong clock, doesn't stop the pruning.
    """
    sealed = AuditEvent.objects.filter(seq__gt=start.seq)
    old = sealed.filter(at__lt=limit)
    kept = sealed.filter(at__gte=limit, at__lte=now).order_by("seq").first()
    if kept is not None:
        old = old.filter(seq__lt=kept.seq)
    return old.order_by("-seq").values_list("seq", flat=True).first() or start.seq


def _prune_rows(key: str, start: Place, last: int, now: datetime) -> int:
    if last == start.seq:
        return 0
    end = _checked(key, start, last)
    count = end.seq - start.seq
    checkpoint_add(key=key, to=end, events=count, at=now)
    with removal_allowed(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM audit_auditevent WHERE seq <= %s", [last])
    return count


def _checked(key: str, start: Place, last: int) -> Place:
    """Return the place of the last event to delete.

    Raises ChainError if an event before it was changed or is missing.
    """
    place = start
    for fields, seal in sealed_rows(after=start.seq):
        if fields.seq > last:
            break
        if fields.seq != place.seq + 1 or seal != seal_of(key, place.seal, fields):
            raise ChainError(CHANGED)
        place = Place(fields.seq, seal)
    return place


# Read events in the form in which they are signed.

BATCH = 2_000
COLUMNS = (
    "id",
    "at",
    "action",
    "actor_kind",
    "actor",
    "chat",
    "object_type",
    "object_id",
    "content_hash",
    "text",
)


def waiting() -> QuerySet[AuditEvent]:
    """Return the events that aren't sealed yet, in the order in which they will be sealed."""
    return AuditEvent.objects.filter(seq__isnull=True).order_by("id")


def unsealed_fields(events: QuerySet[AuditEvent], first_seq: int) -> list[Fields]:
    """Return the events with the numbers that they would get, starting at ``first_seq``."""
    rows = _with_text(events).values_list(*COLUMNS)
    return [Fields(seq, *row) for seq, row in enumerate(rows, start=first_seq)]


def sealed_rows(*, after: int, batch: int = BATCH) -> Iterator[tuple[Fields, str]]:
    """Yield the sealed events after a number, with their seals, in order. Reads in batches."""
    while True:
        events = AuditEvent.objects.filter(seq__gt=after).order_by("seq")
        rows = list(_with_text(events).values_list("seq", *COLUMNS, "seal")[:batch])
        for row in rows:
            yield _sealed(row)
        if len(rows) < batch:
            return
        after = rows[-1][0]


def rows_as_fields(events: QuerySet[AuditEvent], *, batch: int) -> Iterator[tuple[Fields, str]]:
    """Yield events with their seals, oldest first, sealed or not.

    Reads in batches, so that no transaction stays open while a client reads slowly.
    """
    after = 0
    while True:
        some = _with_text(events.order_by("id").filter(id__gt=after))
        rows = list(some.values_list("seq", *COLUMNS, "seal")[:batch])
        for row in rows:
            yield _sealed(row)
        if len(rows) < batch:
            return
        after = rows[-1][1]


def sealed_row(seq: int) -> tuple[Fields, str] | None:
    events = AuditEvent.objects.filter(seq=seq)
    row = _with_text(events).values_list("seq", *COLUMNS, "seal").first()
    return _sealed(row) if row else None


def _sealed(row: Sequence[Any]) -> tuple[Fields, str]:
    *fields, seal = row
    return Fields(*fields), seal


def _with_text(events: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
    return events.annotate(text=Cast("details", TextField()))
