"""Take up the turns that dead workers left."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from sessions_app.tasks import sweep_turns


class Command(BaseCommand):
    help = (
        "Release the turns that dead programs left, and mark sends that were never confirmed. "
        "`answer` does this every ten seconds; safe to run at any time."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print the counts as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        counts = sweep_turns()
        if options["json"]:
            self.stdout.write(json.dumps(counts))
        else:
            self.stdout.write(
                f"{counts['enqueued']} turns released, {counts['unconfirmed']} answers unconfirmed."
            )
