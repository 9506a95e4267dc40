"""Run the background workers."""

from __future__ import annotations

from argparse import ArgumentParser
from functools import partial
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
        from memoryproject.foundation.process.forked_programs import ForkedPrograms  # noqa: PLC0415 slow
        from memoryproject.foundation.process.lane_processes import lead  # noqa: PLC0415 slow
        from memoryproject.preloading import preload_workers, prepare_fork  # noqa: PLC0415 slow

        preload_workers()
        prepare_fork()
        ForkedPrograms({"workers": partial(lead, options["name"] or LANES)}).run()
