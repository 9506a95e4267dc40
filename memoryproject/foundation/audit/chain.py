"""The chain of sealed events: its ends, the locks for moving them, and the sealing.

Sealing gives an event its number and the HMAC that binds it to its predecessor.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path

from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from memoryproject.foundation.audit.audit_logfile import (
    AuditLogFile,
    Fields,
    is_signed,
    line_head,
    line_of,
    seal_of,
    sign,
    utc_text,
)
from memoryproject.foundation.audit.models import (
    AuditCheckpoint,
    AuditEvent,
    AuditHead,
    AuditSealJob,
)
from memoryproject.foundation.errors.stored_errors import ErrorText

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
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CHAIN_LOCK])


def head_is_signed(head: AuditHead, key: str) -> bool:
    return is_signed(head.mac, key, "head", head.seq, head.seal)


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
    mac = sign(key, "head", to.seq, to.seal)
    AuditHead.objects.update_or_create(pk=1, defaults={"seq": to.seq, "seal": to.seal, "mac": mac})


def checkpoint_is_signed(
    checkpoint: AuditCheckpoint, key: str, previous: AuditCheckpoint | None
) -> bool:
    return is_signed(checkpoint.mac, key, "checkpoint", *_checkpoint_parts(checkpoint, previous))


def checkpoint_last() -> AuditCheckpoint | None:
    return AuditCheckpoint.objects.order_by("-number").first()


def checkpoint_add(*, key: str, to: Place, events: int, at: datetime) -> None:
    """Sign that so many events up to ``to`` were deleted legitimately."""
    last = checkpoint_last()
    number = last.number + 1 if last else 1
    made = AuditCheckpoint(number=number, seq=to.seq, seal=to.seal, events=events, at=at)
    made.mac = sign(key, "checkpoint", *_checkpoint_parts(made, last))
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
        utc_text(checkpoint.at),
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
COLUMNS = (*Fields._fields[:-1], "text", "seal")
Sealed = tuple[Fields, str]


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
        rows = [(Fields(*fields), seal) for *fields, seal in some]
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
            done, more = _seal_batch(key, AuditLogFile(log_path), batch)
        sealed += done
        if not more:
            return sealed


def _seal_batch(key: str, log: AuditLogFile, batch: int) -> tuple[int, bool]:
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
        log.append(b"".join(line_of(*row) for row in rows))
    _store(rows)
    fields, seal = rows[-1]
    head_move(key=key, to=Place(fields.seq, seal))
    return len(rows), True


def _chained(key: str, head: Place, events: Iterable[Fields]) -> list[Sealed]:
    """Number the events from the chain's end on, and compute their seals."""
    rows: list[Sealed] = []
    previous = head.seal
    for seq, event in enumerate(events, start=head.seq + 1):
        fields = event._replace(seq=seq)
        previous = seal_of(key, previous, fields)
        rows.append((fields, previous))
    return rows


def _written_already(key: str, head: Place, log: AuditLogFile, batch: int) -> list[Sealed]:
    """Return the events that a sealer wrote to the file before it was killed, in their order.

    Such a sealer didn't commit. Lines that match no waiting event are evidence that the table was
    truncated or restored: they stay where they are, and audit_verify reports them.
    """
    lines = log.lines_after(head.seq, at_most=batch)
    ids = [found.id for line in lines if (found := line_head(line)) is not None]
    if not ids:
        return []
    by_id = {fields.id: fields for fields, _ in signed_rows(waiting().filter(pk__in=ids))}
    rows = _chained(key, head, (by_id[each] for each in ids if each in by_id))
    fitting = 0
    while fitting < len(rows) and line_of(*rows[fitting]) == lines[fitting]:
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
