"""Compare the log file with the table, both read once in the order of their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader

from memoryproject.foundation.audit.audit_logfile import MAX_LINE_LENGTH
from memoryproject.foundation.audit.canonical import Fields, line_head, line_of, line_read
from memoryproject.foundation.audit.rows import sealed_row
from memoryproject.foundation.audit.verify.report import Findings
from memoryproject.foundation.errors.stored_errors import ErrorText

ADVICE = ErrorText("advice_copies")


class LogLines:
    """The lines of the log file.

    ``pruned``: lines up to this number may be left over. ``last``: the number of the chain's last
    event.
    """

    def __init__(
        self, file: BufferedReader, size: int, pruned: int, last: int, found: Findings
    ) -> None:
        self._lines = _lines(file, size)
        self._pruned = pruned
        self._last = last
        self._found = found
        self._line = b""
        self.count = 0
        self.repeated = 0
        # The seal that the line before the current one has, by its event's number.
        self.passed: dict[int, str] = {}
        self._advance()

    def meet(self, fields: Fields, seal: str) -> list[str] | None:
        """Find the event's line, and return the names of the columns that differ in it.

        The list is empty for an unchanged line. Returns None if there is no line.
        """
        expected = line_of(fields, seal)
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
            head = line_head(self._line)
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
        row = sealed_row(seq)
        if row is None:
            self.passed = {seq: str((line_read(self._line) or {}).get("seal", ""))}
        elif self._line == line_of(*row):
            self.repeated += 1
        else:
            text = ErrorText("line_other_event", number=seq)
            self._found.add("line_changed", self._here(), text, ADVICE)

    def _advance(self) -> None:
        self._line = next(self._lines, b"")
        self.count += bool(self._line)

    def _here(self) -> str:
        return ErrorText("log_line", number=self.count)


def _lines(file: BufferedReader, size: int) -> Iterator[bytes]:
    """Yield the lines of the file's first ``size`` bytes.

    A line that is longer than any valid one is split into pieces.
    """
    while size > 0:
        line = file.readline(min(size, MAX_LINE_LENGTH))
        if not line:
            return
        size -= len(line)
        yield line


def _differing(line: bytes, expected: bytes) -> list[str]:
    """Return the names of the fields that differ; "form" if only the encoding does."""
    there, wanted = line_read(line, str) or {}, line_read(expected, str) or {}
    names = [name for name in {**wanted, **there} if there.get(name) != wanted.get(name)]
    return names or ["form"]
