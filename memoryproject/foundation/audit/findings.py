"""The findings of a verification: collected, as a report, and in the reader's language."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import FINDINGS, RESULT
from memoryproject.foundation.errors.stored_errors import ErrorText, translate_error

# A completely corrupt log must not produce a report of a million lines.
MAX_FINDINGS = 100


@dataclass(frozen=True)
class Finding:
    """One problem.

    ``kind`` is for programs, ``where`` names the row or line, ``text`` says what is wrong and
    ``advice`` what to do.
    """

    kind: str
    where: str
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text} {self.advice}"


@dataclass(frozen=True)
class AuditReport:
    """The result of a verification.

    ``events`` were checked, from ``first`` to ``last``; ``pruned`` events were replaced by
    checkpoints; ``waiting`` events aren't sealed yet. ``findings`` are the first ones of ``found``,
    which counts all.
    """

    events: int
    first: int | None
    last: int | None
    pruned: int
    checkpoints: int
    waiting: int
    lines: int
    repeated_lines: int
    found: int
    findings: tuple[Finding, ...]

    @property
    def verified(self) -> bool:
        return self.found == 0

    def as_dict(self) -> dict[str, Any]:
        return {"verified": self.verified, **asdict(self)}

    def describe(self) -> str:
        """Return the result in a sentence or two."""
        events = f"{self.events} sealed events"
        if self.events:
            events += f" (numbers {self.first} to {self.last})"
        checked = f"{events} and {self.lines} lines of the log file were checked"
        if self.pruned:
            checked += f"; {self.pruned} older ones were pruned rightly"
        waiting = f" {self.waiting} events wait to be sealed." if self.waiting else ""
        if self.verified:
            return f"Verified: {checked}, all is as it was sealed.{waiting}"
        things = "1 thing is" if self.found == 1 else f"{self.found} things are"
        return f"NOT verified: {things} wrong. {checked}.{waiting}"


@dataclass
class Findings:
    """Collects findings and merges adjacent ones of one kind."""

    count: int = 0
    kept: list[Finding] = field(default_factory=list)
    _runs: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, kind: str, where: str, text: str, advice: str) -> None:
        self.count += 1
        if len(self.kept) < MAX_FINDINGS:
            self.kept.append(Finding(kind, where, text, advice))

    def add_numbers(self, kind: str, first: int, last: int | None = None) -> None:
        """Add events with the same problem; ``kind`` is one of RUNS."""
        last = first if last is None else last
        begun = self._runs.get(kind)
        if begun is not None and first == begun[1] + 1:
            self._runs[kind] = (begun[0], last)
            return
        self._tell(kind)
        self._runs[kind] = (first, last)

    def any(self) -> bool:
        return bool(self.count or self._runs)

    def finish(self) -> tuple[Finding, ...]:
        for kind in list(self._runs):
            self._tell(kind)
        return tuple(self.kept)

    def _tell(self, kind: str) -> None:
        if kind in self._runs:
            first, last = self._runs.pop(kind)
            self.add(kind, numbers(first, last), *RUNS[kind])


def numbers(first: int, last: int) -> str:
    if first == last:
        return ErrorText("event_number", number=first)
    return ErrorText("event_numbers", first=first, last=last)


def flaws(report: AuditReport) -> Iterator[str]:
    """Yield the findings as texts, and the number of those left out."""
    yield from map(str, report.findings)
    if report.found > len(report.findings):
        yield f"… and {report.found - len(report.findings)} more."


RESTORE = ErrorText("advice_compare")
RUNS = {
    "row_deleted": (ErrorText("row_deleted"), RESTORE),
    "line_missing": (ErrorText("line_missing"), ErrorText("advice_copies")),
    "log_ahead": (ErrorText("log_ahead"), ErrorText("advice_log_ahead")),
    "row_pruned": (ErrorText("row_pruned"), RESTORE),
    "row_inserted": (ErrorText("row_inserted"), RESTORE),
}


# The report in the reader's language.


def shown_findings(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return each finding: its meaning, the exact row or line, and what to do."""
    return [
        {
            "meaning": str(FINDINGS.get(finding["kind"], finding["kind"])),
            "exactly": _("%(where)s: %(text)s %(advice)s")
            % {name: translate_error(finding[name]) for name in ("where", "text", "advice")},
        }
        for finding in report["findings"]
    ]


def shown_result(report: Mapping[str, Any]) -> list[str]:
    """Return the result as sentences."""
    values = {"count": report["events"], "lines": report["lines"]}
    sentences = [_verdict(report["found"]), RESULT["checked"] % values]
    if report["pruned"]:
        sentences.append(RESULT["pruned"] % {"count": report["pruned"]})
    if more := report["found"] - len(report["findings"]):
        sentences.append(RESULT["more"] % {"count": more})
    return sentences


def _verdict(found: int) -> str:
    return str(RESULT["wrong"] % {"count": found}) if found else _("Verified: no tampering found.")
