"""Check the servers of models."""

from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from memoryproject.foundation.commands import ReportingCommand
from memoryproject.staff_site.operations.model_check import Report, model_findings


class Command(ReportingCommand):
    def run(self, options: dict[str, Any]) -> None:
        report = Report(list(model_findings()), timezone.now())
        marks = {True: "good", None: "note", False: "trouble"}
        lines = [f"{marks[each.ok]:8} {each.words}" for each in report.findings]
        if report.lines:
            lines += ["", "Lines for .env:", *report.lines]
        self.report(options, report.as_dict(), "\n".join(lines), ensure_ascii=False)
        if not report.ok:
            raise CommandError("Something doesn't work.")
