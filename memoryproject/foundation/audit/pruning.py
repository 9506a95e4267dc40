"""Prune the chain behind a signed checkpoint, begin it anew, and write its log file anew."""

import logging
from datetime import datetime, timedelta
from pathlib import Path

from django.db import transaction

from memoryproject.foundation.audit.audit_events import COMMAND_LINE, audit_record
from memoryproject.foundation.audit.audit_logfile import AuditLogFile, line_of, seal_of
from memoryproject.foundation.audit.chain import (
    BEGINNING,
    ChainError,
    Place,
    audit_seal,
    chain_lock,
    checkpoint_add,
    checkpoint_is_signed,
    checkpoint_last,
    head_current,
    removal_allowed,
    sealed_rows,
)
from memoryproject.foundation.audit.models import AuditCheckpoint, AuditEvent, AuditHead

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
    with removal_allowed():
        AuditEvent.objects.filter(seq__lte=last).delete()
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


# Begin anew where the chain can't be continued, and the log file of a restored database.


def audit_begin_anew(*, key: str, log_path: Path) -> int:
    """Seal all events anew from number 1 and set the log file aside; return how many.

    The events are sealed as they are now. The last event of the new chain records this action.
    Raises ChainError if the chain can be continued, and OSError.
    """
    reason = _reason(key, log_path)
    with transaction.atomic():
        chain_lock()
        with removal_allowed():
            AuditEvent.objects.filter(seq__isnull=False).update(seq=None, seal="")
            AuditCheckpoint.objects.all().delete()
        AuditHead.objects.all().delete()
        audit_record("audit.begin_anew", COMMAND_LINE, "audit log")
        aside = log_set_aside(log_path=log_path, name="before-new-chain")
    logger.critical("The audit log's chain was begun anew (%s) Set aside: %s.", reason, aside)
    return audit_seal(key=key, log_path=log_path)


def _reason(key: str, log_path: Path) -> ChainError:
    """Return the reason why the chain can't be continued."""
    try:
        audit_seal(key=key, log_path=log_path)
    except ChainError as error:
        return error
    raise ChainError("The chain can be gone on with: there is nothing to begin anew.")


def log_write(*, log_path: Path) -> int:
    """Write a line for every sealed event if there is no log file; return how many.

    Raises ChainError if there is a log file, because it is evidence. Raises OSError if it can't be
    written; then there is no file.
    """
    with transaction.atomic():
        chain_lock()
        if log_path.exists():
            raise ChainError(
                f"{log_path} is there: it is never replaced. Move it aside first, and keep it."
            )
        written = AuditLogFile(log_path).rewrite(line_of(*row) for row in sealed_rows(after=0))
    logger.warning("The audit log file was written anew from the database: %d lines.", written)
    return written


def log_set_aside(*, log_path: Path, name: str) -> Path | None:
    """Rename the log file of another database to a free name in the same folder.

    Returns its path, or None if there is no log file. Raises OSError.
    """
    with transaction.atomic():
        chain_lock()
        if not log_path.exists():
            return None
        aside, count = log_path.with_name(f"{log_path.name}.{name}"), 1
        while aside.exists():
            count += 1
            aside = log_path.with_name(f"{log_path.name}.{name}-{count}")
        log_path.rename(aside)
    return aside
