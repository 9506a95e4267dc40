"""Verify the whole audit log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memoryproject.foundation.audit.canonical import Fields
from memoryproject.foundation.audit.chain import WRONG_KEY, ChainError
from memoryproject.foundation.audit.models import AuditCheckpoint, AuditEvent
from memoryproject.foundation.audit.rows import sealed_rows, waiting
from memoryproject.foundation.audit.sealing import audit_seal
from memoryproject.foundation.audit.verify.lines import ADVICE, LogLines
from memoryproject.foundation.audit.verify.report import RESTORE, AuditReport, Findings
from memoryproject.foundation.audit.verify.snapshot import Snapshot, take_snapshot
from memoryproject.foundation.audit.verify.table import (
    Rows,
    check_checkpoints,
    check_head,
    key_fits,
)
from memoryproject.foundation.errors.stored_errors import ErrorText, error_text

Progress = Callable[[int, int], None]

MISSING = (ErrorText("log_missing"), ErrorText("advice_log_missing"))
UNWRITABLE = ErrorText("advice_space")


def audit_verify(
    *,
    key: str,
    log_path: Path,
    progress: Progress = lambda _done, _total: None,
    seals: bool = True,
) -> AuditReport:
    """Seal the waiting events, then check sealed events, checkpoints and the log file.

    ``seals``: without it nothing is written, and waiting events are only counted.

    Reads the table and the file once, in batches. Raises DatabaseError.

    Call it outside of a transaction. ``progress`` is called with the number of checked events and
    the total.
    """
    found = Findings()
    refusal = _seal(key, log_path, found) if seals else ""
    with take_snapshot(log_path) as moment:
        check = _Check(key, log_path, moment, found, progress)
        check.run()
        if refusal and not found.any():
            # By now the check has mostly found the reason why they couldn't be sealed.
            found.add("not_sealed", ErrorText("waiting_events"), ErrorText("not_sealed"), refusal)
        return check.report()


def _seal(key: str, log_path: Path, found: Findings) -> str:
    """Seal the waiting events. Return why the chain can't be continued, or "" if it can."""
    try:
        audit_seal(key=key, log_path=log_path)
    except ChainError as error:
        return error_text(error)
    except OSError as error:
        text = ErrorText("log_unwritable", why=error.strerror)
        found.add("log_unwritable", ErrorText("log_file", path=log_path), text, UNWRITABLE)
    return ""


class _Check:
    """One check of a snapshot."""

    def __init__(
        self, key: str, log_path: Path, moment: Snapshot, found: Findings, progress: Progress
    ) -> None:
        self._key = key
        self._log_path = log_path
        self._moment = moment
        self._found = found
        self._progress = progress
        self._checkpoints = list(AuditCheckpoint.objects.order_by("number"))
        self._rows: Rows | None = None
        self._lines: LogLines | None = None

    def run(self) -> None:
        head, found = self._moment.head, self._found
        if not key_fits(self._key, head, self._checkpoints):
            found.add("wrong_key", "AUDIT_KEY", ErrorText("key_wrong"), WRONG_KEY)
            return
        start = check_checkpoints(self._key, self._checkpoints, found)
        newest = AuditEvent.objects.order_by("-seq").filter(seq__gte=1).first()
        last = check_head(self._key, head, start, newest.seq if newest else None, found)
        self._rows = Rows(self._key, start, found)
        if self._moment.file is not None:
            self._lines = LogLines(self._moment.file, self._moment.size, start.seq, last, found)
        elif last:
            found.add("log_missing", ErrorText("log_file", path=self._log_path), *MISSING)
        self._go_along(self._rows, start.seq, last)

    def _go_along(self, rows: Rows, first: int, last: int) -> None:
        for fields, seal in sealed_rows(after=0):
            if fields.seq <= first:
                self._found.add_numbers("row_pruned", fields.seq)
            elif fields.seq > last:
                self._found.add_numbers("row_inserted", fields.seq)
            else:
                self._check_row(rows, fields, seal)
                self._progress(fields.seq - first, last - first)
        rows.finish(last)
        if self._lines is not None:
            self._lines.finish()

    def _check_row(self, rows: Rows, fields: Fields, seal: str) -> None:
        differing = self._lines.meet(fields, seal) if self._lines else None
        fits = rows.fits(fields, seal, self._lines.passed if self._lines else {})
        where = ErrorText("event_row", number=fields.seq, row=fields.id)
        if not fits and differing:
            text = ErrorText("row_differs", fields=", ".join(differing))
            self._found.add("row_changed", where, text, RESTORE)
        elif not fits and differing is None:
            self._found.add("row_changed", where, ErrorText("row_seal"), RESTORE)
        elif not fits:
            text = ErrorText("row_and_line_seal")
            self._found.add("row_changed", where, text, RESTORE)
        elif differing:
            line = ErrorText("event_line", number=fields.seq)
            text = ErrorText("line_differs", fields=", ".join(differing))
            self._found.add("line_changed", line, text, ADVICE)

    def report(self) -> AuditReport:
        findings = self._found.finish()
        rows = self._rows
        return AuditReport(
            events=rows.count if rows else 0,
            first=rows.first if rows else None,
            last=rows.place.seq if rows and rows.count else None,
            pruned=sum(one.events for one in self._checkpoints),
            checkpoints=len(self._checkpoints),
            waiting=waiting().count(),
            lines=self._lines.count if self._lines else 0,
            repeated_lines=self._lines.repeated if self._lines else 0,
            found=self._found.count,
            findings=findings,
        )
