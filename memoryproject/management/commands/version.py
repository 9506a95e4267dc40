"""Print the version."""

from typing import Any

from django.core.management.base import BaseCommand

from memoryproject import __version__


class Command(BaseCommand):
    """On the command line, memoryproject/__main__.py prints it before Django is loaded."""

    help = "Print the version of the server."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(__version__)
