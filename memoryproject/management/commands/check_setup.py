"""Check whether everything is in place."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.checks import run_checks
from django.core.management.base import BaseCommand, CommandError

from memoryproject.checks import SETTINGS
from memoryproject.staff_site.server_state import parts


class Command(BaseCommand):
    help = "Check the settings, the folders, the database, the migrations and the workers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print the result as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        found = parts()
        for warning in run_checks(tags=[SETTINGS]):
            self.stderr.write(f"{warning.msg} {warning.hint or ''}".strip())
        if options["json"]:
            document = {part.name: "ready" if part.ready else part.hint for part in found}
            self.stdout.write(json.dumps(document))
        else:
            for part in found:
                mark = "ready" if part.ready else f"NOT READY. {part.hint}"
                self.stdout.write(f"{part.name}: {mark}")
        if not all(part.ready for part in found):
            raise CommandError("Something is missing, see above.")
