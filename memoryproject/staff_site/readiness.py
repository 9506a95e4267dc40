"""Checks whether all parts of the server are up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.foundation.process.lanes import LANES, lane_of
from memoryproject.foundation.process.storage import MIN_FREE_BYTES, free_bytes
from memoryproject.staff_site.broker import BrokerGoneError, clusters, takes_jobs


@dataclass(frozen=True)
class Part:
    """A part of the server; ``hint`` says what to do if it isn't ready."""

    name: str
    ready: bool
    hint: str = ""

    @property
    def title(self) -> str:
        return str(TITLES.get(self.name, self.name))


TITLES = {
    "storage": gettext_lazy("storage"),
    "database": gettext_lazy("database"),
    "migrations": gettext_lazy("migrations"),
    "workers": gettext_lazy("workers"),
}


def parts() -> list[Part]:
    """Return storage, database, migrations and workers, in the order of their dependencies.

    Never raises where the database is out of reach: it may break at any query.
    """
    storage = _storage()
    try:
        return [storage, *_database_parts()]
    except Error as error:
        return [storage, Part("database", False, str(error).strip())]


def _database_parts() -> Iterator[Part]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'")
        has_vector = cursor.fetchone() is not None
    yield Part("database", True)
    if not has_vector:
        yield Part("pgvector", False, _("Run `python manage.py migrate`."))
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    yield Part("migrations", not plan, _("Run `python manage.py migrate`.") if plan else "")
    if not plan:
        yield _workers()


def _storage() -> Part:
    enough = free_bytes(settings.DATA_DIR) >= MIN_FREE_BYTES
    hint = (
        "" if enough else _("The disk of DATA_DIR is full: free some space (docs/operations.md).")
    )
    return Part("storage", enough, hint)


def _workers() -> Part:
    try:
        alive = {lane_of(each.cluster_id) for each in clusters() if takes_jobs(each)}
    except BrokerGoneError:
        return Part("workers", False, _("The broker doesn't answer: see Q_BROKER."))
    missing = [lane for lane in LANES if lane not in alive]
    if not missing:
        return Part("workers", True)
    hint = _("Run `python manage.py qcluster`.")
    if len(missing) < len(LANES):
        lanes = _("No workers run for: %(lanes)s.") % {"lanes": ", ".join(missing)}
        hint = f"{lanes} {hint}"
    return Part("workers", False, hint)
