"""Delete old events behind a signed checkpoint."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from pathlib import Path

from django.db import connection, transaction

from memoryproject.foundation.audit.audit_logfile import AuditLogFile
from memoryproject.foundation.audit.canonical import seal_of
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
from memoryproject.foundation.audit.rows import sealed_rows

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
