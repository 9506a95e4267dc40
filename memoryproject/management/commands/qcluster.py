"""Run the background workers."""

from __future__ import annotations

import gc
import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from memoryproject.foundation.process.lanes import LANES


class Command(BaseCommand):
    help = (
        "Run the background workers until Ctrl-C: all lanes, or those of --name. Each lane has "
        "a queue and workers of its own."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "-n",
            "--name",
            action="append",
            choices=LANES,
            help="Run this lane only; may be given several times.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        from memoryproject.foundation.process.lane_processes import LaneProcesses  # noqa: PLC0415 slow
        from sessions_app.embedding.facade import load_early  # noqa: PLC0415 slow

        # The lanes are forked: what is loaded by now, they share, and it is never collected.
        load_early()
        gc.collect()
        gc.freeze()
        # django-q2's own way to name a cluster would change the lanes of this process's children.
        os.environ.pop("Q_CLUSTER_NAME", None)
        LaneProcesses(options["name"] or LANES).run()
