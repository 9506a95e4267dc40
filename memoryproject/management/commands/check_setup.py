"""Check whether everything is in place."""

from typing import Any

from django.core.checks import run_checks
from django.core.management.base import CommandError

from memoryproject.checks import SETTINGS
from memoryproject.foundation.commands import ReportingCommand
from memoryproject.staff_site.server_state import parts


class Command(ReportingCommand):
    json_help = "Print the result as JSON."

    def run(self, options: dict[str, Any]) -> None:
        found = parts()
        for warning in run_checks(tags=[SETTINGS]):
            self.stderr.write(f"{warning.msg} {warning.hint or ''}".strip())
        states = {part.name: "ready" if part.ready else part.hint for part in found}
        marks = ("ready" if part.ready else f"NOT READY. {part.hint}" for part in found)
        text = "\n".join(f"{name}: {mark}" for name, mark in zip(states, marks, strict=True))
        self.report(options, states, text)
        if not all(part.ready for part in found):
            raise CommandError("Something is missing, see above.")
