"""Seal events: give each its number and the HMAC that binds it to its predecessor."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from django.db import IntegrityError, connection, transaction

from memoryproject.foundation.audit.audit_logfile import (
    AuditLogFile,
    Fields,
    line_head,
    line_of,
    seal_of,
)
from memoryproject.foundation.audit.chain import (
    ChainError,
    Place,
    chain_lock,
    head_current,
    head_move,
)
from memoryproject.foundation.audit.models import AuditSealJob
from memoryproject.foundation.audit.pruning import unsealed_fields, waiting
from memoryproject.foundation.errors.stored_errors import ErrorText

logger = logging.getLogger(__name__)

BATCH = 1_000

Sealed = tuple[Fields, str]


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
        events = unsealed_fields(waiting()[:batch], head.seq + 1)
        rows = _chained(key, head, events)
        if not rows:
            return 0, False
        log.append(b"".join(line_of(*row) for row in rows))
    _store(rows)
    fields, seal = rows[-1]
    head_move(key=key, to=Place(fields.seq, seal))
    return len(rows), True


def _chained(key: str, head: Place, events: Sequence[Fields]) -> list[Sealed]:
    rows = []
    previous = head.seal
    for fields in events:
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
    by_id = {fields.id: fields for fields in unsealed_fields(waiting().filter(pk__in=ids), 0)}
    known = [by_id[each] for each in ids if each in by_id]
    numbered = [fields._replace(seq=head.seq + place) for place, fields in enumerate(known, 1)]
    rows = _chained(key, head, numbered)
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
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE audit_auditevent AS event SET seq = sealed.seq, seal = sealed.seal"
                " FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) AS sealed (id, seq, seal)"
                " WHERE event.id = sealed.id AND event.seq IS NULL",
                [
                    [fields.id for fields, _ in rows],
                    [fields.seq for fields, _ in rows],
                    [seal for _, seal in rows],
                ],
            )
            if cursor.rowcount != len(rows):
                raise ChainError(ErrorText("chain_changed"))
    except IntegrityError as error:
        raise ChainError(ErrorText("chain_foreign_event", number=rows[0][0].seq - 1)) from error
