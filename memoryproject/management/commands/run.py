"""Start everything: PostgreSQL, the web server and the programs that work."""

from typing import Any

from memoryproject.__main__ import become_server
from memoryproject.foundation.commands import DeclaredCommand


class Command(DeclaredCommand):
    """Without options it is run before Django is loaded: see memoryproject/__main__.py."""

    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        become_server()
