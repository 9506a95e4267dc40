"""Export of the audit log: as the lines of the log file, or as a table for a spreadsheet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import QuerySet

from memoryproject.foundation.audit.canonical import Fields, line_of, utc_text
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.audit.rows import rows_as_fields
from memoryproject.foundation.text.csv_lines import CSV_TYPE, csv_lines

BATCH = 2_000
COLUMNS = (*Fields._fields, "seal")


def as_json_lines(events: QuerySet[AuditEvent]) -> Iterator[bytes]:
    """Yield each event as its line in the log file, byte for byte.

    An event that isn't sealed yet has no number and no seal.
    """
    for fields, seal in rows_as_fields(events, batch=BATCH):
        yield line_of(fields, seal)


def as_csv(events: QuerySet[AuditEvent]) -> Iterator[bytes]:
    """Yield the events as CSV with a row of titles."""
    return csv_lines(COLUMNS, _csv_rows(events))


def _csv_rows(events: QuerySet[AuditEvent]) -> Iterator[list[Any]]:
    for fields, seal in rows_as_fields(events, batch=BATCH):
        parts = fields._replace(at=utc_text(fields.at))._asdict()  # type: ignore[arg-type]
        yield [*parts.values(), seal]


FORMATS: dict[str, tuple[str, Callable[[QuerySet[AuditEvent]], Iterator[bytes]]]] = {
    "jsonl": ("application/x-ndjson", as_json_lines),
    "csv": (CSV_TYPE, as_csv),
}


def line_shown(event: AuditEvent) -> dict[str, Any]:
    """Return all fields of an event's line, for display."""
    ((fields, seal),) = rows_as_fields(AuditEvent.objects.filter(pk=event.pk), batch=1)
    line: dict[str, Any] = json.loads(line_of(fields, seal))
    return line
