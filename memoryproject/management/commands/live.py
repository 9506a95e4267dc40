"""Keep the streams that tell open pages of staff of news."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from memoryproject.checks import SETTINGS


class Command(BaseCommand):
    help = (
        "Tell open pages of staff that something changed, until Ctrl-C. Without it, the pages "
        "ask every few seconds."
    )
    # Checking all would load the staff's pages and the API.
    requires_system_checks = (SETTINGS,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--bind",
            default="127.0.0.1:8003",
            help="Where to listen: host:port or unix:/path (default: %(default)s).",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        from memoryproject.staff_site.live.stream_server import serve  # noqa: PLC0415 slow

        serve(options["bind"])
