"""The partitions of deliveries and replays, one for each month (UTC), by migration 0017.

A row always has its place: what no month holds is in the partition `…_rest`, and what was there
before the first month in `…_before`.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from importlib import import_module

from django.db import OperationalError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from psycopg import sql

from memoryproject.foundation.process.narrowing import instance
from sessions_app.models import InboundDelivery, TurnReplay

logger = logging.getLogger(__name__)

MIGRATION = "0017_partitions"
# Programs of the version before the migration have ended by then.
DRAINED_AFTER = timedelta(days=1)
MONTHS_AHEAD = 2
# WhatsApp tells the history of 180 days when a number is connected anew. By the keys of deliveries
# what was erased since does not come back.
MIN_DELIVERIES_KEPT = timedelta(days=200)
# Others wait behind whoever waits for a table.
LOCK_TIMEOUT = "2s"
BATCH = 5_000
# The months, by name: since when (null: the first) and until when.
_MONTHS = r"""
SELECT relname, (regexp_match(bound, 'FROM \(''([^'']+)'))[1]::timestamptz,
       (regexp_match(bound, 'TO \(''([^'']+)'))[1]::timestamptz
FROM (SELECT relname, pg_get_expr(relpartbound, oid) AS bound
      FROM pg_class JOIN pg_inherits ON inhrelid = oid WHERE inhparent = %s::regclass) AS leaf
WHERE bound <> 'DEFAULT'
"""


@dataclass(frozen=True)
class Partitioned:
    """A table by months: the column of the time, the key, and the keys of each partition."""

    table: str
    column: str
    key: str
    keys: str


DELIVERIES = Partitioned(
    InboundDelivery._meta.db_table,
    "received_at",
    "id",
    "PRIMARY KEY (id), UNIQUE (provider, delivery_key)",
)
REPLAYS = Partitioned(TurnReplay._meta.db_table, "made_at", "turn_id", "PRIMARY KEY (turn_id)")


def partitions_tend(
    *, now: datetime, deliveries_kept: timedelta, replays_kept: timedelta | None
) -> list[str]:
    """Make the partitions of this and the next months; drop those past their retention.

    Returns the names of those that were made or dropped. A table that is in use for too long is
    left to the next run.
    """
    kept = {DELIVERIES: max(deliveries_kept, MIN_DELIVERIES_KEPT), REPLAYS: replays_kept}
    changed = []
    for each, age in kept.items():
        try:
            if not _is_partitioned(each):
                continue
            changed += _make(each, now)
            if age is not None:
                # A program's clock that is ahead must not drop what is young.
                changed += _drop(each, min(now, _database_time()) - age)
        except OperationalError as error:
            logger.warning("Partitions of %s wait for the next run: %s", each.table, error)
    return changed


def _is_partitioned(each: Partitioned) -> bool:
    """Return whether the table has partitions; give it some once no older program writes to it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT relkind FROM pg_class WHERE oid = %s::regclass", [each.table])
        if cursor.fetchone()[0] == "p":
            return True
        applied = MigrationRecorder.Migration.objects.get(
            app="sessions_app", name=MIGRATION
        ).applied
        if _database_time() - applied < DRAINED_AFTER:
            return False
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        migration = import_module(f"sessions_app.migrations.{MIGRATION}")
        migration.partition_table(cursor, each.table, each.column, each.keys)
        return True


def _make(each: Partitioned, now: datetime) -> list[str]:
    """Make what is missing, each in a transaction of its own, with its rows in `…_rest`."""
    month = now.astimezone(timezone.utc).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    made = []
    for _ in range(MONTHS_AHEAD + 1):
        following = (month + timedelta(days=32)).replace(day=1)
        there = _months(each)
        name = f"{each.table}_{month:%Y_%m}"
        if not any((not start or start <= month) and month < end for start, end in there.values()):
            _make_one(each, name, month, following)
            made.append(name)
        month = following
    return made


def _make_one(each: Partitioned, name: str, start: datetime, end: datetime) -> None:
    run = _runner(each, name=sql.Identifier(name), start=sql.Literal(start), end=sql.Literal(end))
    with transaction.atomic():
        run("SET LOCAL lock_timeout = {timeout}")
        # A clock that was wrong may have put rows of this month into the rest. Nobody may add one
        # between its copy and the removal.
        run("LOCK TABLE ONLY {table} IN ACCESS EXCLUSIVE MODE")
        run(
            "CREATE TEMP TABLE moved AS SELECT * FROM {rest}"
            " WHERE {column} >= {start} AND {column} < {end}"
        )
        run("DELETE FROM {rest} WHERE {column} >= {start} AND {column} < {end}")
        run(
            "CREATE TABLE {name} PARTITION OF {table} ({keys}) FOR VALUES FROM ({start}) TO ({end})"
        )
        run("INSERT INTO {name} SELECT * FROM moved")
        run("DROP TABLE moved")


def _drop(each: Partitioned, limit: datetime) -> list[str]:
    """Drop partitions that hold nothing younger; delete such rows of the rest."""
    dropped = []
    for name, (_, end) in _months(each).items():
        if end <= limit:
            run = _runner(each, name=sql.Identifier(name))
            with transaction.atomic():
                run("SET LOCAL lock_timeout = {timeout}")
                run("DROP TABLE {name}")
            dropped.append(name)
    run = _runner(each, limit=sql.Literal(limit), batch=sql.Literal(BATCH))
    while run(
        "DELETE FROM {rest} WHERE {key} IN"
        " (SELECT {key} FROM {rest} WHERE {column} < {limit} LIMIT {batch})"
    ):
        pass
    return dropped


def _months(each: Partitioned) -> dict[str, tuple[datetime | None, datetime]]:
    with connection.cursor() as cursor:
        cursor.execute(_MONTHS, [each.table])
        return {name: (start, end) for name, start, end in cursor.fetchall()}


def _database_time() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return instance(cursor.fetchone()[0], datetime)


def _runner(each: Partitioned, **more: sql.Composable) -> Callable[[str], int]:
    """Return what runs a statement about the table, and returns the number of its rows."""
    names = {
        "table": sql.Identifier(each.table),
        "rest": sql.Identifier(f"{each.table}_rest"),
        "column": sql.Identifier(each.column),
        "key": sql.Identifier(each.key),
        "keys": sql.SQL(each.keys),
        "timeout": sql.Literal(LOCK_TIMEOUT),
        **more,
    }

    def run(statement: str) -> int:
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL(statement).format(**names))
            return int(cursor.rowcount)

    return run
