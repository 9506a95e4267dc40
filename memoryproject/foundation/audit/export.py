"""Export of the audit log: as the lines of the log file, or as a table for a spreadsheet."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import QuerySet

from memoryproject.foundation.audit.canonical import Fields, line_of, utc_text
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.audit.rows import rows_as_fields

BATCH = 2_000
COLUMNS = (*Fields._fields, "seal")
# Characters that a spreadsheet takes for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def as_json_lines(events: QuerySet[AuditEvent]) -> Iterator[bytes]:
    """Yield each event as its line in the log file, byte for byte.

    An event that isn't sealed yet has no number and no seal.
    """
    for fields, seal in rows_as_fields(events, batch=BATCH):
        yield line_of(fields, seal)


def as_csv(events: QuerySet[AuditEvent]) -> Iterator[bytes]:
    """Yield the events as CSV with a row of titles.

    The encoding is UTF-8 with a byte order mark, which spreadsheets need to recognise it.
    """
    echo = _Echo()
    writer = csv.writer(echo)
    yield b"\xef\xbb\xbf" + writer.writerow(COLUMNS)
    for fields, seal in rows_as_fields(events, batch=BATCH):
        parts = fields._replace(at=utc_text(fields.at))._asdict()  # type: ignore[arg-type]
        yield writer.writerow([_harmless(part) for part in (*parts.values(), seal)])


FORMATS: dict[str, tuple[str, Callable[[QuerySet[AuditEvent]], Iterator[bytes]]]] = {
    "jsonl": ("application/x-ndjson", as_json_lines),
    "csv": ("text/csv; charset=utf-8", as_csv),
}


def _harmless(part: Any) -> Any:
    """Return the text in a form that no spreadsheet evaluates."""
    if isinstance(part, str) and part.lstrip(" ").startswith(FORMULA):
        return f"'{part}"
    return "" if part is None else part


class _Echo:
    """A file for csv that returns what is written to it."""

    def write(self, text: str) -> bytes:
        return text.encode()


def line_shown(event: AuditEvent) -> dict[str, Any]:
    """Return all fields of an event's line, for display."""
    ((fields, seal),) = rows_as_fields(AuditEvent.objects.filter(pk=event.pk), batch=1)
    line: dict[str, Any] = json.loads(line_of(fields, seal))
    return line
