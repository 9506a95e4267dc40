"""Start everything: PostgreSQL, the web server and the programs that work."""

from typing import Any

from django.core.management.base import BaseCommand

from memoryproject.__main__ import become_server


class Command(BaseCommand):
    """Without options it is run before Django is loaded: see memoryproject/__main__.py."""

    requires_system_checks = ()

    help = (
        "Prepare the installation and keep it running until Ctrl-C: PostgreSQL in DATA_DIR, the "
        "web server on PORT, and the programs that work. `make run` does the same in a clone."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        become_server()
