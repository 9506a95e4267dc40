"""Lift locks after failed logins."""

import json
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.commands import DeclaredCommand, flag, option
from memoryproject.staff_site.accounts import lockout


class Command(DeclaredCommand):
    arguments = [[option("name", nargs="?"), flag("--all"), flag("--list")], flag("--json")]

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
