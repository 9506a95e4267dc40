"""The findings of a verification, in the reader's language."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memoryproject.foundation.audit.audit_logfile import Fields, line_of, utc_text
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.audit.pruning import rows_as_fields
from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.text.csv_lines import CSV_TYPE, csv_lines

KINDS: Mapping[str, Promise] = {
    "row_changed": gettext_lazy("An event was edited, or moved to another place."),
    "row_deleted": gettext_lazy("Events are missing from the table."),
    "row_inserted": gettext_lazy("Events were put into the table that this program didn't seal."),
    "row_pruned": gettext_lazy("Events that were pruned are in the table again."),
    "head_changed": gettext_lazy("The mark of the chain's end was changed."),
    "head_removed": gettext_lazy("The mark of the chain's end was removed."),
    "checkpoint_changed": gettext_lazy("A mark of where old events were pruned was changed."),
    "checkpoint_removed": gettext_lazy("A mark of where old events were pruned was removed."),
    "log_ahead": gettext_lazy(
        "The log file has events that the table lacks: its end was cut off, or an older database "
        "was put in its place."
    ),
    "line_missing": gettext_lazy("Lines were taken out of the log file."),
    "line_changed": gettext_lazy("A line of the log file was edited."),
    "line_unreadable": gettext_lazy("The log file holds a line that isn't one of its own."),
    "log_missing": gettext_lazy("There is no log file."),
    "log_unwritable": gettext_lazy("The log file can't be written, so that events wait."),
    "not_sealed": gettext_lazy("Events wait and can't be sealed."),
    "wrong_key": gettext_lazy("Nothing fits AUDIT_KEY: it is another key than the log's."),
}


def shown_findings(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return each finding: its meaning, the exact row or line, and what to do."""
    return [
        {
            "meaning": str(KINDS.get(finding["kind"], finding["kind"])),
            "exactly": _("%(where)s: %(text)s %(advice)s")
            % {name: translate_error(finding[name]) for name in ("where", "text", "advice")},
        }
        for finding in report["findings"]
    ]


def shown_result(report: Mapping[str, Any]) -> list[str]:
    """Return the result as sentences."""
    sentences = [_verdict(report), _checked(report)]
    if report["pruned"]:
        text = ngettext(
            "%(count)d older event was pruned rightly.",
            "%(count)d older events were pruned rightly.",
            report["pruned"],
        )
        sentences.append(text % {"count": report["pruned"]})
    if report["found"] > len(report["findings"]):
        more = report["found"] - len(report["findings"])
        text = ngettext(
            "%(count)d more finding isn't shown.", "%(count)d more findings aren't shown.", more
        )
        sentences.append(text % {"count": more})
    return sentences


def _verdict(report: Mapping[str, Any]) -> str:
    if report["found"] == 0:
        return _("Verified: no tampering found.")
    text = ngettext(
        "NOT verified: %(count)d thing is wrong.",
        "NOT verified: %(count)d things are wrong.",
        report["found"],
    )
    return text % {"count": report["found"]}


def _checked(report: Mapping[str, Any]) -> str:
    text = ngettext(
        "%(count)d sealed event and %(lines)d lines of the log file were checked.",
        "%(count)d sealed events and %(lines)d lines of the log file were checked.",
        report["events"],
    )
    return text % {"count": report["events"], "lines": report["lines"]}


# Export of the audit log: as the lines of the log file, or as a table for a spreadsheet.

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
