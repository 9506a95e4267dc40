"""Django's `migrate`, one at a time, which says what each migration does and that it goes on."""

import sys
import time
from threading import Event, Thread
from typing import Any

from django.core.management.commands import migrate
from django.db import connection
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor

from memoryproject.foundation.leases import advisory_lock

# An arbitrary lock number that nothing else uses.
LOCK = 0x316A7E0
ASK_AGAIN_SECONDS = 1.0
TELL_SECONDS = 10.0


class BusyError(Exception):
    """Another process migrates this database."""


def is_upgrade() -> bool:
    """Return whether migrations are missing in a database that has others."""
    executor = MigrationExecutor(connection)
    wanted = executor.loader.graph.leaf_nodes()
    return bool(executor.loader.applied_migrations) and bool(executor.migration_plan(wanted))


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        if options["check_unapplied"] or options["plan"]:
            super().handle(*args, **options)
            return
        self._done = Event()
        try:
            self._handle_alone(*args, **options)
        finally:
            self._done.set()

    def _handle_alone(self, *args: Any, **options: Any) -> None:
        is_told = False
        while True:
            try:
                # One that was killed may have left a statement at work in the database.
                with advisory_lock(LOCK, BusyError()):
                    super().handle(*args, **options)
                return
            except BusyError:
                if not is_told:
                    self.stderr.write("Another process migrates this database: waiting for it …")
                is_told = True
                time.sleep(ASK_AGAIN_SECONDS)

    def migration_progress_callback(
        self, action: str, migration: Migration | None = None, fake: bool = False
    ) -> None:
        """Print each migration on a line of its own: a log may show it while it is at work."""
        if not action.startswith("apply_") or migration is None:
            super().migration_progress_callback(action, migration, fake)
            return
        self._done.set()
        if action == "apply_start" and self.verbosity:
            self._print(f"  {migration}: {_meaning(migration)}")
            self._done = Event()
            Thread(target=self._tell, args=(self._done,), daemon=True).start()

    def _print(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _tell(self, done: Event) -> None:
        """Print how long the migration has been at work, until it is done."""
        since = time.monotonic()
        while not done.wait(TELL_SECONDS):
            self._print(f"    … at work for {time.monotonic() - since:.0f} seconds")


def _meaning(migration: Migration) -> str:
    """Return the first line of the migration's docstring."""
    text = sys.modules[type(migration).__module__].__doc__ or "changes of the tables"
    return text.strip().partition("\n")[0]
