"""The chain of sealed events: its ends, locks and sealing; pruning behind a signed checkpoint."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from memoryproject.foundation.audit import audit_events, audit_logfile
from memoryproject.foundation.audit.models import (
    AuditCheckpoint,
    AuditEvent,
    AuditHead,
    AuditSealJob,
)
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.leases import transaction_lock

logger = logging.getLogger(__name__)

# An advisory lock number that nothing else uses.
CHAIN_LOCK = 0xA0D1781

WRONG_KEY = ErrorText("chain_wrong_key")
NOT_SIGNED = ErrorText("chain_not_signed")
NO_HEAD = ErrorText("chain_no_head")


class ChainError(Exception):
    """The chain can't be continued; the text says why and what to do."""


@dataclass(frozen=True)
class Place:
    """A place in the chain: the event with this number has this seal.

    The chain begins after number 0, whose seal is empty.
    """

    seq: int = 0
    seal: str = ""


BEGINNING = Place()


def chain_lock() -> None:
    """Lock the chain until the caller's transaction ends: one process seals or prunes."""
    transaction_lock(CHAIN_LOCK)


def head_is_signed(head: AuditHead, key: str) -> bool:
    return audit_logfile.is_signed(head.mac, key, "head", head.seq, head.seal)


def head_current(*, key: str) -> Place:
    """Return the end of the chain.

    Raises ChainError if it was changed or the key is another one.
    """
    head = AuditHead.objects.filter(pk=1).first()
    if head is None:
        if AuditCheckpoint.objects.exists() or AuditEvent.objects.filter(seq__gte=1).exists():
            raise ChainError(NO_HEAD)
        return BEGINNING
    if not head_is_signed(head, key):
        raise ChainError(NOT_SIGNED)
    return Place(head.seq, head.seal)


def head_move(*, key: str, to: Place) -> None:
    mac = audit_logfile.sign(key, "head", to.seq, to.seal)
    AuditHead.objects.update_or_create(pk=1, defaults={"seq": to.seq, "seal": to.seal, "mac": mac})


def checkpoint_is_signed(
    checkpoint: AuditCheckpoint, key: str, previous: AuditCheckpoint | None
) -> bool:
    return audit_logfile.is_signed(
        checkpoint.mac, key, "checkpoint", *_checkpoint_parts(checkpoint, previous)
    )


def checkpoint_last() -> AuditCheckpoint | None:
    return AuditCheckpoint.objects.order_by("-number").first()


def checkpoint_add(*, key: str, to: Place, events: int, at: datetime) -> None:
    """Sign that so many events up to ``to`` were deleted legitimately."""
    last = checkpoint_last()
    number = last.number + 1 if last else 1
    made = AuditCheckpoint(number=number, seq=to.seq, seal=to.seal, events=events, at=at)
    made.mac = audit_logfile.sign(key, "checkpoint", *_checkpoint_parts(made, last))
    made.save()


def _checkpoint_parts(
    checkpoint: AuditCheckpoint, previous: AuditCheckpoint | None
) -> tuple[str | int, ...]:
    return (
        previous.mac if previous else "",
        checkpoint.number,
        checkpoint.seq,
        checkpoint.seal,
        checkpoint.events,
        audit_logfile.utc_text(checkpoint.at),
    )


@contextmanager
def removal_allowed() -> Iterator[None]:
    """Allow deleting events and checkpoints, which the database refuses otherwise.

    Applies to the caller's transaction. For pruning and restoring.
    """
    allow = "SELECT set_config('memoryproject.audit_pruning', %s, true)"
    with connection.cursor() as cursor:
        cursor.execute(allow, ["on"])
        yield
        cursor.execute(allow, [""])


# Events in the form in which they are signed.

READ_AT_ONCE = 2_000
COLUMNS = (*audit_logfile.Fields._fields[:-1], "text", "seal")
Sealed = tuple[audit_logfile.Fields, str]


def waiting() -> QuerySet[AuditEvent]:
    """Return the events that aren't sealed yet, in the order in which they will be sealed."""
    return AuditEvent.objects.filter(seq__isnull=True).order_by("id")


def signed_rows(
    events: QuerySet[AuditEvent], *, by: str = "id", batch: int = READ_AT_ONCE
) -> Iterator[Sealed]:
    """Yield events with their seals, oldest first, sealed or not. ``by``: id or seq.

    Reads in batches, so that no transaction stays open while a client reads slowly.
    """
    events = events.order_by(by).annotate(text=Cast("details", TextField()))
    following = events
    while True:
        some = following.values_list(*COLUMNS)[:batch]
        rows = [(audit_logfile.Fields(*fields), seal) for *fields, seal in some]
        yield from rows
        if len(rows) < batch:
            return
        following = events.filter(**{f"{by}__gt": getattr(rows[-1][0], by)})


def sealed_rows(*, after: int, batch: int = READ_AT_ONCE) -> Iterator[Sealed]:
    """Yield the sealed events after a number, with their seals, in order."""
    return signed_rows(AuditEvent.objects.filter(seq__gt=after), by="seq", batch=batch)


# Sealing.

BATCH = 1_000


def audit_seal(*, key: str, log_path: Path, batch: int = BATCH) -> int:
    """Seal all committed events and return how many were sealed.

    Each batch is a separate transaction. Its lines are on the disk before it commits, so that no
    sealed event lacks its line. A process that is killed in between leaves lines of events that
    aren't sealed, and the next run seals exactly those first. Raises ChainError if the chain can't
    be continued, and OSError if the log file can't be written; the events then wait.
    """
    # This comes first: a transaction that commits after the query for rows enqueues a new job.
    AuditSealJob.objects.all().delete()
    sealed = 0
    while True:
        with transaction.atomic():
            chain_lock()
            done, more = _seal_batch(key, audit_logfile.AuditLogFile(log_path), batch)
        sealed += done
        if not more:
            return sealed


def _seal_batch(key: str, log: audit_logfile.AuditLogFile, batch: int) -> tuple[int, bool]:
    """Return how many events were sealed, and whether there may be more."""
    head = head_current(key=key)
    rows = _written_already(key, head, log, batch)
    if rows:
        log.sync()
    else:
        events = islice(signed_rows(waiting(), batch=batch), batch)
        rows = _chained(key, head, (fields for fields, _ in events))
        if not rows:
            return 0, False
        log.append(b"".join(audit_logfile.line_of(*row) for row in rows))
    _store(rows)
    fields, seal = rows[-1]
    head_move(key=key, to=Place(fields.seq, seal))
    return len(rows), True


def _chained(key: str, head: Place, events: Iterable[audit_logfile.Fields]) -> list[Sealed]:
    """Number the events from the chain's end on, and compute their seals."""
    rows: list[Sealed] = []
    previous = head.seal
    for seq, event in enumerate(events, start=head.seq + 1):
        fields = event._replace(seq=seq)
        previous = audit_logfile.seal_of(key, previous, fields)
        rows.append((fields, previous))
    return rows


def _written_already(
    key: str, head: Place, log: audit_logfile.AuditLogFile, batch: int
) -> list[Sealed]:
    """Return the events that a sealer wrote to the file before it was killed, in their order.

    Such a sealer didn't commit. Lines that match no waiting event are evidence that the table was
    truncated or restored: they stay where they are, and audit_verify reports them.
    """
    lines = log.lines_after(head.seq, at_most=batch)
    ids = [found.id for line in lines if (found := audit_logfile.line_head(line)) is not None]
    if not ids:
        return []
    by_id = {fields.id: fields for fields, _ in signed_rows(waiting().filter(pk__in=ids))}
    rows = _chained(key, head, (by_id[each] for each in ids if each in by_id))
    fitting = 0
    while fitting < len(rows) and audit_logfile.line_of(*rows[fitting]) == lines[fitting]:
        fitting += 1
    if fitting < len(lines):
        logger.critical(
            "The audit log file is ahead of the database by %d events that aren't there. Run "
            "`manage.py audit_verify`.",
            len(lines) - fitting,
        )
    return rows[:fitting]


def _store(rows: Sequence[Sealed]) -> None:
    sealed = [AuditEvent(pk=fields.id, seq=fields.seq, seal=seal) for fields, seal in rows]
    try:
        stored = waiting().bulk_update(sealed, ["seq", "seal"])
    except IntegrityError as error:
        raise ChainError(ErrorText("chain_foreign_event", number=rows[0][0].seq - 1)) from error
    if stored != len(rows):
        raise ChainError(ErrorText("chain_changed"))


# Prune the chain behind a signed checkpoint, begin it anew, and write its log file anew.


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
            audit_logfile.AuditLogFile(log_path).drop(lambda seq: seq <= last.seq)
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
        if fields.seq != place.seq + 1 or seal != audit_logfile.seal_of(key, place.seal, fields):
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
        audit_events.audit_record("audit.begin_anew", audit_events.COMMAND_LINE, "audit log")
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
        written = audit_logfile.AuditLogFile(log_path).rewrite(
            audit_logfile.line_of(*row) for row in sealed_rows(after=0)
        )
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
