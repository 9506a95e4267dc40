"""Lift locks after failed logins."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.staff_site.accounts import lockout


class Command(BaseCommand):
    help = (
        "Let a name be tried again at once after too many failed logins, from everywhere; or show "
        "which names are locked."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        which = parser.add_mutually_exclusive_group()
        which.add_argument("name", nargs="?", help="The user name.")
        which.add_argument("--all", action="store_true", help="Every name.")
        which.add_argument("--list", action="store_true", help="Show failed logins that count.")
        parser.add_argument("--json", action="store_true", help="Show them as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["list"]:
            self._list(as_json=options["json"])
            return
        if not options["name"] and not options["all"]:
            raise CommandError("Say which name, or --all, or --list.", returncode=2)
        attempts = lockout.attempts_that_count(timezone.now())
        if options["name"]:
            attempts = attempts.filter(username=lockout.name_mark(options["name"]))
        freed = lockout.login_unlock(attempts=attempts, actor=COMMAND_LINE)
        if not freed:
            raise CommandError("There are no failed logins that count.")
        self.stdout.write(f"{options['name'] or 'All'}: free again.")

    def _list(self, *, as_json: bool) -> None:
        now = timezone.now()
        names, locked = lockout.names_by_mark(), lockout.pairs_locked(now)
        rows = [
            {
                "name": names.get(mark or ""),
                "address": address,
                "failures": failures,
                "locked": (mark, address) in locked,
            }
            for mark, address, failures in lockout.failures_by_pair(now)
        ]
        if as_json:
            self.stdout.write(json.dumps(rows))
            return
        for row in rows:
            state = "locked" if row["locked"] else "not locked"
            name = row["name"] or "(a name that nobody has)"
            self.stdout.write(f"{name} from {row['address']}: {row['failures']} failures, {state}")
