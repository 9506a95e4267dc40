"""Verify the whole audit log."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path

from django.db import connection, transaction

from memoryproject.foundation.audit import audit_logfile, chain
from memoryproject.foundation.audit.findings import RESTORE, AuditReport, Findings
from memoryproject.foundation.audit.models import AuditCheckpoint, AuditEvent, AuditHead
from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.leases import advisory_lock

Progress = Callable[[int, int], None]

MISSING = (ErrorText("log_missing"), ErrorText("advice_log_missing"))
UNWRITABLE = ErrorText("advice_space")


def audit_verify(
    *, key: str, log_path: Path, progress: Progress = lambda _done, _total: None, seals: bool = True
) -> AuditReport:
    """Seal the waiting events, then check sealed events, checkpoints and the log file.

    ``seals``: without it nothing is written, and waiting events are only counted.

    Reads the table and the file once, in batches. Raises DatabaseError.

    Call it outside of a transaction. ``progress`` is called with the number of checked events and
    the total.
    """
    found = Findings()
    refusal = _seal(key, log_path, found) if seals else ""
    with take_snapshot(log_path) as (head, file):
        check = _Check(key, found, progress)
        check.run(head, file, log_path)
        if refusal and not found.any():
            # By now the check has mostly found the reason why they couldn't be sealed.
            found.add("not_sealed", ErrorText("waiting_events"), ErrorText("not_sealed"), refusal)
        return check.report()


def _seal(key: str, log_path: Path, found: Findings) -> str:
    """Seal the waiting events. Return why the chain can't be continued, or "" if it can."""
    try:
        chain.audit_seal(key=key, log_path=log_path)
    except chain.ChainError as error:
        return error_text(error)
    except OSError as error:
        text = ErrorText("log_unwritable", why=error.strerror)
        found.add("log_unwritable", ErrorText("log_file", path=log_path), text, UNWRITABLE)
    return ""


class _Check:
    """One check of a snapshot: the seal of each row, missing rows, the checkpoints and the file.

    ``place`` is the last row that was checked.
    """

    def __init__(self, key: str, found: Findings, progress: Progress) -> None:
        self._key = key
        self._found = found
        self._progress = progress
        self._checkpoints = list(AuditCheckpoint.objects.order_by("number"))
        self._lines: LogLines | None = None
        self._place = chain.BEGINNING
        # The seal that the row should have.
        self._computed = ""
        self._first: int | None = None
        self._count = 0

    def run(self, head: AuditHead | None, file: BufferedReader | None, log_path: Path) -> None:
        found = self._found
        if not key_fits(self._key, head, self._checkpoints):
            found.add("wrong_key", "AUDIT_KEY", ErrorText("key_wrong"), chain.WRONG_KEY)
            return
        start = check_checkpoints(self._key, self._checkpoints, found)
        newest = AuditEvent.objects.order_by("-seq").filter(seq__gte=1).first()
        last = check_head(self._key, head, start, newest.seq if newest else None, found)
        self._place, self._computed = start, start.seal
        if file is not None:
            self._lines = LogLines(file, start.seq, last, found)
        elif last:
            found.add("log_missing", ErrorText("log_file", path=log_path), *MISSING)
        self._check_rows(start.seq, last)
        if self._place.seq < last:
            found.add_numbers("row_deleted", self._place.seq + 1, last)
        if self._lines is not None:
            self._lines.finish()

    def _check_rows(self, first: int, last: int) -> None:
        for fields, seal in chain.sealed_rows(after=0):
            if fields.seq <= first:
                self._found.add_numbers("row_pruned", fields.seq)
            elif fields.seq > last:
                self._found.add_numbers("row_inserted", fields.seq)
            else:
                self._check_row(fields, seal)
                self._progress(fields.seq - first, last - first)

    def _check_row(self, fields: audit_logfile.Fields, seal: str) -> None:
        differing = self._lines.meet(fields, seal) if self._lines else None
        if not self._fits(fields, seal):
            where = ErrorText("event_row", number=fields.seq, row=fields.id)
            if differing:
                text = ErrorText("row_differs", fields=", ".join(differing))
            else:
                text = ErrorText("row_seal" if differing is None else "row_and_line_seal")
            self._found.add("row_changed", where, text, RESTORE)
        elif differing:
            line = ErrorText("event_line", number=fields.seq)
            text = ErrorText("line_differs", fields=", ".join(differing))
            self._found.add("line_changed", line, text, ADVICE)

    def _fits(self, fields: audit_logfile.Fields, seal: str) -> bool:
        """Return whether the seal is the row's own, and report rows missing before it.

        After a gap, the seal of the predecessor is taken from its line, if the file has it.
        Without it the row can't be checked and counts as fitting.
        """
        # If the predecessor's seal was changed, its right one still binds this row.
        previous = {self._place.seal, self._computed}
        if fields.seq > self._place.seq + 1:
            self._found.add_numbers("row_deleted", self._place.seq + 1, fields.seq - 1)
            passed = self._lines.passed if self._lines else {}
            previous = {passed[seq] for seq in (fields.seq - 1,) if seq in passed}
        self._place = chain.Place(fields.seq, seal)
        self._count += 1
        self._first = self._first or fields.seq
        computed = {audit_logfile.seal_of(self._key, each, fields) for each in previous}
        fits = not computed or seal in computed
        self._computed = seal if fits else computed.pop()
        return fits

    def report(self) -> AuditReport:
        findings = self._found.finish()
        return AuditReport(
            events=self._count,
            first=self._first,
            last=self._place.seq if self._count else None,
            pruned=sum(one.events for one in self._checkpoints),
            checkpoints=len(self._checkpoints),
            waiting=chain.waiting().count(),
            lines=self._lines.count if self._lines else 0,
            repeated_lines=self._lines.repeated if self._lines else 0,
            found=self._found.count,
            findings=findings,
        )


@contextmanager
def take_snapshot(log_path: Path) -> Iterator[tuple[AuditHead | None, BufferedReader | None]]:
    """Read the database and the file while no sealer is between its line and its commit.

    Yields the chain's end and the open file, positioned at its end, each None if there is none:
    lines that are appended later don't count. A sealer waits only until the snapshot begins.
    """
    with ExitStack() as unlock, ExitStack() as stack:
        # Before the transaction: its first statement determines what it sees.
        unlock.enter_context(advisory_lock(chain.CHAIN_LOCK))
        stack.enter_context(transaction.atomic(durable=True))
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        head = AuditHead.objects.filter(pk=1).first()
        file = stack.enter_context(log_path.open("rb")) if log_path.exists() else None
        if file is not None:
            file.seek(0, os.SEEK_END)
        unlock.close()
        yield head, file


# Compare the log file with the table, both read once in the order of their numbers.

ADVICE = ErrorText("advice_copies")


class LogLines:
    """The lines of the log file.

    ``pruned``: lines up to this number may be left over. ``last``: the number of the chain's last
    event.
    """

    def __init__(self, file: BufferedReader, pruned: int, last: int, found: Findings) -> None:
        self._lines = _lines(file)
        self._pruned = pruned
        self._last = last
        self._found = found
        self._line = b""
        self.count = 0
        self.repeated = 0
        # The seal that the line before the current one has, by its event's number.
        self.passed: dict[int, str] = {}
        self._advance()

    def meet(self, fields: audit_logfile.Fields, seal: str) -> list[str] | None:
        """Find the event's line, and return the names of the columns that differ in it.

        The list is empty for an unchanged line. Returns None if there is no line.
        """
        expected = audit_logfile.line_of(fields, seal)
        # An unchanged line needn't be parsed.
        if self._line == expected:
            self._advance()
            return []
        if self._skip_to(fields.seq) != fields.seq:
            self._found.add_numbers("line_missing", fields.seq)
            return None
        line = self._line
        self._advance()
        return [] if line == expected else _differing(line, expected)

    def finish(self) -> None:
        """Check the lines after the last row's line."""
        self._skip_to(self._last + 1)

    def _skip_to(self, seq: int) -> int:
        """Skip lines that are unreadable, already passed, or of events that don't exist.

        Returns the number of the next line, 0 at the end.
        """
        while self._line:
            head = audit_logfile.line_head(self._line)
            if head is None:
                text = ErrorText("line_unreadable")
                self._found.add("line_unreadable", self._here(), text, ADVICE)
            elif head.seq > self._last:
                self._found.add_numbers("log_ahead", head.seq)
            elif head.seq >= seq:
                return head.seq
            elif head.seq > self._pruned:
                self._look_back(head.seq)
            self._advance()
        return 0

    def _look_back(self, seq: int) -> None:
        """Check a line that is out of order.

        A duplicate is harmless. The line of a missing row shows what the row was. Any other line
        was forged.
        """
        row = next(chain.signed_rows(AuditEvent.objects.filter(seq=seq)), None)
        if row is None:
            self.passed = {seq: str((audit_logfile.line_read(self._line) or {}).get("seal", ""))}
        elif self._line == audit_logfile.line_of(*row):
            self.repeated += 1
        else:
            text = ErrorText("line_other_event", number=seq)
            self._found.add("line_changed", self._here(), text, ADVICE)

    def _advance(self) -> None:
        self._line = next(self._lines, b"")
        self.count += bool(self._line)

    def _here(self) -> str:
        return ErrorText("log_line", number=self.count)


def _lines(file: BufferedReader) -> Iterator[bytes]:
    """Yield the lines before the file's position.

    A line that is longer than any valid one is split into pieces.
    """
    size = file.tell()
    file.seek(0)
    while size > 0:
        line = file.readline(min(size, audit_logfile.MAX_LINE_LENGTH))
        if not line:
            return
        size -= len(line)
        yield line


def _differing(line: bytes, expected: bytes) -> list[str]:
    """Return the names of the fields that differ; "form" if only the encoding does."""
    there, wanted = (
        audit_logfile.line_read(line, str) or {},
        audit_logfile.line_read(expected, str) or {},
    )
    names = [name for name in {**wanted, **there} if there.get(name) != wanted.get(name)]
    return names or ["form"]


# Check the key, the checkpoints and the chain's end.

PROBED = 50


def key_fits(key: str, head: AuditHead | None, checkpoints: list[AuditCheckpoint]) -> bool:
    """Return whether anything was signed with this key.

    It checks the end of the chain, the checkpoints, and the first rows. An empty log fits every
    key.
    """
    signed = [chain.head_is_signed(head, key)] if head else []
    signed += [
        chain.checkpoint_is_signed(one, key, before)
        for before, one in zip([None, *checkpoints], checkpoints, strict=False)
    ]
    last = checkpoints[-1] if checkpoints else None
    place = chain.Place(last.seq, last.seal) if last else chain.BEGINNING
    for fields, seal in chain.sealed_rows(after=place.seq, batch=PROBED):
        if any(signed) or len(signed) > PROBED:
            break
        signed.append(seal == audit_logfile.seal_of(key, place.seal, fields))
        place = chain.Place(fields.seq, seal)
    return any(signed) or not signed


def check_checkpoints(key: str, checkpoints: list[AuditCheckpoint], found: Findings) -> chain.Place:
    """Check the checkpoints, and return the place where the rows begin."""
    before: AuditCheckpoint | None = None
    for place, one in enumerate(checkpoints, start=1):
        where = ErrorText("checkpoint_row", number=one.number, row=one.pk)
        follows = one.number == (before.number if before else 0) + 1
        goes_on = one.seq - one.events == (before.seq if before else 0)
        if not follows:
            found.add("checkpoint_removed", where, ErrorText("predecessor_removed"), RESTORE)
        elif not (chain.checkpoint_is_signed(one, key, before) and goes_on and one.number == place):
            found.add("checkpoint_changed", where, ErrorText("changed"), RESTORE)
        before = one
    return chain.Place(before.seq, before.seal) if before else chain.BEGINNING


def check_head(
    key: str, head: AuditHead | None, start: chain.Place, newest: int | None, found: Findings
) -> int:
    """Return the number at which the chain ends.

    ``newest``: the greatest number in the table, which is used if the stored end can't be trusted.
    """
    where = ErrorText("audit_head")
    if head is not None and chain.head_is_signed(head, key):
        return max(head.seq, start.seq)
    if head is not None:
        found.add("head_changed", where, ErrorText("changed"), RESTORE)
    elif newest or start.seq:
        found.add("head_removed", where, ErrorText("removed"), RESTORE)
    return max(newest or 0, start.seq)
