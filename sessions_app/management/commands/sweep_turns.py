"""Take up the turns that dead workers left."""

from __future__ import annotations

from typing import Any

from memoryproject.foundation.commands import ReportingCommand
from sessions_app.tasks import sweep_turns


class Command(ReportingCommand):
    help = (
        "Enqueue chats whose turns wait with nobody at work, and mark sends that were never "
        "confirmed. Runs each minute by schedule; safe to run at any time."
    )

    json_help = "Print the counts as JSON."

    def run(self, options: dict[str, Any]) -> None:
        counts = sweep_turns()
        text = f"{counts['enqueued']} chats enqueued, {counts['unconfirmed']} answers unconfirmed."
        self.report(options, counts, text)
