"""Run the background workers."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from memoryproject.checks import SETTINGS
from memoryproject.foundation.process.lanes import LANES


class Command(BaseCommand):
    help = (
        "Run the background workers until Ctrl-C: all lanes, or those of --name. Each lane has "
        "a queue and workers of its own."
    )
    # Checking all would load the staff's pages and the API, which no worker needs.
    requires_system_checks = (SETTINGS,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "-n",
            "--name",
            action="append",
            choices=LANES,
            help="Run this lane only; may be given several times.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        from memoryproject.foundation.process.lane_processes import FirstProcess  # noqa: PLC0415 slow
        from memoryproject.preloading import preload_workers, prepare_fork  # noqa: PLC0415 slow

        # The lanes are forked: they share what is loaded by now.
        preload_workers()
        prepare_fork()
        # django-q2's own way to name a cluster would change the lanes of this process's children.
        os.environ.pop("Q_CLUSTER_NAME", None)
        FirstProcess(options["name"] or LANES).run()
