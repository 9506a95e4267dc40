"""Propose to merge memories that say much the same."""

import sys
from typing import Any

from memories_app.review.consolidate import memories_propose_merges
from memoryproject.foundation.commands import ProgressBar, ReportingCommand
from sessions_app.embedding.facade import embedder


class Command(ReportingCommand):
    def run(self, options: dict[str, Any]) -> None:
        made = memories_propose_merges(
            model_id=embedder().model_id, progress=ProgressBar(sys.stderr)
        )
        self.report(options, {"proposals": made}, f"{made} new proposals.")
