"""Propose to merge memories that say much the same."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from memories_app.review.consolidate import memories_propose_merges
from memoryproject.foundation.process.command_options import ProgressBar
from sessions_app.embedding.facade import embedder


class Command(BaseCommand):
    help = (
        "Look for memories that say much the same and propose to merge them; also done once a "
        "week. Nothing is merged: staff accept or dismiss the proposals in the admin."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print the report as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            made = memories_propose_merges(
                model_id=embedder().model_id, progress=ProgressBar(sys.stderr)
            )
        except DatabaseError as error:
            raise CommandError(f"The database can't be used: {error}".strip()) from error
        text = json.dumps({"proposals": made}) if options["json"] else f"{made} new proposals."
        self.stdout.write(text)
