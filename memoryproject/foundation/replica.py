"""Read for staff's pages on a replica of the database (DATABASE_REPLICA_URL).

A replica is read only while it holds all that the primary had written when the page was asked for:
so a page shows what its reader has just changed, and nothing that was erased before. Otherwise the
primary is read.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model
from psycopg.errors import QueryCanceled

logger = logging.getLogger(__name__)

Made = TypeVar("Made")
REPLICA = "replica"
# Who may do what is always read from the primary, with sessions and tokens.
READ_APPS = frozenset({"sessions_app", "memories_app", "cards_app", "audit", "hooks", "dashboard"})
# A page waits so long for the replica; one that failed is asked again after this.
MAX_WAIT_SECONDS = 0.5
RETRY_SECONDS = 5.0
_ASK_AGAIN_SECONDS = 0.01

_alias: ContextVar[str] = ContextVar("read_alias", default=DEFAULT_DB_ALIAS)
_left_alone_until = 0.0

# An identifier of the cluster and the database: a position in the log of another one says nothing.
# With synchronous_commit = off, what is committed may not be flushed yet.
_PRIMARY = """
SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()
            ELSE pg_current_wal_flush_lsn() END::text,
       system_identifier::text || ' ' || current_database()
FROM pg_control_system()
"""
# A replica that was promoted goes its own way.
_REPLICA = """
SELECT pg_is_in_recovery() AND %s = (SELECT system_identifier::text || ' ' || current_database()
                                     FROM pg_control_system()),
       coalesce(pg_last_wal_replay_lsn() >= %s::pg_lsn, false),
       coalesce(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0)::float
"""


@dataclass(frozen=True)
class ReplicaState:
    """``problem``: a code: "", "late", "unreachable" or "other". ``seconds``: how far it is behind;
    None where that is unknown."""

    problem: str
    seconds: float | None


class ReplicaRouter:
    """Django's router: our records are read where `on_replica` says, all else on the primary."""

    def db_for_read(self, model: type[Model], **_: Any) -> str:
        return _alias.get() if model._meta.app_label in READ_APPS else DEFAULT_DB_ALIAS

    def db_for_write(self, model: type[Model], **_: Any) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, *_: Any, **__: Any) -> bool:
        return True

    def allow_migrate(self, db: str, *_: Any, **__: Any) -> bool:
        return db == DEFAULT_DB_ALIAS


def read_alias() -> str:
    """Return the name of the database that is read now."""
    return _alias.get()


def read_connection() -> BaseDatabaseWrapper:
    """Return the connection for statements of our own that only read."""
    return connections[_alias.get()]


@contextmanager
def on_replica() -> Iterator[None]:
    """Read on the replica in the block."""
    token = _alias.set(REPLICA)
    try:
        yield
    finally:
        _alias.reset(token)


def from_replica(make: Callable[[], Made]) -> Made | None:
    """Return what is made from the replica; None if the primary has to be read.

    Whatever goes wrong is left to the primary, whose errors are the ones to show.
    """
    if not _is_usable():
        return None
    try:
        with on_replica():
            return make()
    except Exception as error:
        if isinstance(error, Error):
            connections[REPLICA].close()
            _leave_alone(type(error).__name__)
        return None


def each_from_replica(parts: Iterator[Made]) -> Iterator[Made]:
    """Yield the parts, each of which is made from the replica."""
    while True:
        # Between two parts this thread may read something else.
        with on_replica():
            try:
                part = next(parts)
            except StopIteration:
                return
        yield part


def _is_usable() -> bool:
    """Return whether the replica holds all that the primary has written; wait a moment for it."""
    if not settings.DATABASE_REPLICA_URL or time.monotonic() < _left_alone_until:
        return False
    state = replica_state()
    if state.problem:
        _leave_alone(state.problem)
    return not state.problem


def _leave_alone(why: str) -> None:
    """Read the primary for some seconds."""
    global _left_alone_until
    _left_alone_until = time.monotonic() + RETRY_SECONDS
    logger.warning("The replica of the database is not read: %s.", why)


def replica_state() -> ReplicaState:
    """Return the state of the replica after a moment's wait. Raises Error without the primary."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_PRIMARY)
        position, identity = cursor.fetchone()
    seen = ReplicaState("unreachable", None)

    async def ask() -> None:
        nonlocal seen
        # A connection of its own: of a machine that hangs, an open one would never be answered.
        replica = await psycopg.AsyncConnection.connect(
            settings.DATABASE_REPLICA_URL, autocommit=True, prepare_threshold=None
        )
        async with replica:
            while seen.problem:
                cursor = await replica.execute(_REPLICA, [identity, position])
                is_ours, is_even, seconds = await cursor.fetchone() or (False, False, None)
                if not is_ours:
                    seen = ReplicaState("other", None)
                    return
                seen = ReplicaState("" if is_even else "late", 0.0 if is_even else seconds)
                await asyncio.sleep(0 if is_even else _ASK_AGAIN_SECONDS)

    try:
        asyncio.run(asyncio.wait_for(ask(), MAX_WAIT_SECONDS))
    except (psycopg.Error, OSError, TimeoutError, asyncio.TimeoutError) as error:
        logger.debug("The replica: %s", type(error).__name__)
    return seen


# How long the reading queries of a search may take.


class TooSlowError(Exception):
    """The queries take too long: something narrower has to be asked for."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Limit the time of each query of the block, which only reads. Raises TooSlowError."""
    try:
        # Rolled back at the end: the limit ends with the transaction.
        with transaction.atomic(using=read_alias()):
            with read_connection().cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{seconds}s"])
            yield
            transaction.set_rollback(True, using=read_alias())
    except OperationalError as error:
        if read_alias() != DEFAULT_DB_ALIAS and not isinstance(error.__cause__, QueryCanceled):
            # The primary is asked instead.
            raise
        raise TooSlowError("It takes too long.") from error
