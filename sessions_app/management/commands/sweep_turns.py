"""Take up the turns that dead workers left."""

from typing import Any

from memoryproject.foundation.commands import ReportingCommand
from sessions_app.tasks import sweep_turns


class Command(ReportingCommand):
    json_help = "Print the counts as JSON."

    def run(self, options: dict[str, Any]) -> None:
        counts = sweep_turns()
        text = f"{counts['enqueued']} turns released, {counts['unconfirmed']} answers unconfirmed."
        self.report(options, counts, text)
