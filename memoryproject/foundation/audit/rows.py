"""Read events in the form in which they are signed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from memoryproject.foundation.audit.canonical import Fields
from memoryproject.foundation.audit.models import AuditEvent

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
