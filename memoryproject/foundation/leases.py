"""Leases on rows: one worker at a time does the work that a row stands for."""

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from django.db import Error, connection, models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

# The process start is given by the wall clock, which may be set while a process runs.
CLOCK_SLACK_SECONDS = 60.0


@lru_cache(maxsize=8)
def _identity(pid: int) -> str:
    import psutil  # noqa: PLC0415 slow to import

    # The process's start distinguishes it from a later one with the same id.
    return f"{socket.gethostname()}:{pid}:{psutil.Process(pid).create_time():.2f}"


def this_process() -> str:
    """Return the name under which this process owns its leases."""
    return _identity(os.getpid())


def owner_is_gone(owner: str) -> bool:
    """Return whether the owner certainly ran on this machine and no longer runs."""
    host, _, rest = owner.partition(":")
    pid, _, started = rest.partition(":")
    if host != socket.gethostname() or not pid.isdigit() or not _is_number(started):
        return False
    import psutil  # noqa: PLC0415 slow to import

    try:
        process = psutil.Process(int(pid))
        zombie = process.status() == psutil.STATUS_ZOMBIE
        return zombie or abs(process.create_time() - float(started)) > CLOCK_SLACK_SECONDS
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


logger = logging.getLogger(__name__)

Work = TypeVar("Work", bound="LeasedWork")

RELEASED: dict[str, Any] = {"lease_token": None, "lease_owner": "", "lease_until": None}


class LeaseLostError(Exception):
    """Another worker has the row now, or it is gone: nothing more may be written."""


class LeasedQuerySet(models.QuerySet[Work]):
    """Rows that workers claim."""

    def claim(self, row: Work, *, now: datetime | None = None, **changes: Any) -> UUID | None:
        """Take the lease of ``row``, apply ``changes`` with it, and return the new token.

        Return None if a living worker holds the lease, the row is not in this queryset, or it was
        claimed after ``row`` was read.
        """
        now = now or timezone.now()
        if row.is_held(now):
            return None
        token = uuid.uuid4()
        unchanged = self.filter(pk=row.pk, lease_token=row.lease_token)
        return token if unchanged.update(**self.model.lease_values(token, now), **changes) else None

    def abandoned(self, now: datetime) -> list[Work]:
        """Return the rows that no living worker holds.

        Takes one query, and checks each owner once.
        """
        is_gone = lru_cache(maxsize=None)(owner_is_gone)
        return [row for row in self if not row.is_held(now, is_gone)]

    def held(self, now: datetime) -> list[Work]:
        """Return the rows that living workers hold."""
        leased = self.filter(lease_token__isnull=False, lease_until__gt=now)
        return [row for row in leased if row.is_held(now)]


class LeasedWork(models.Model):
    """A row that one worker at a time works on: it owns the row while it holds the lease."""

    # Longer than any single step between two renewals.
    lease_length: ClassVar[timedelta] = timedelta(minutes=3)

    lease_token = models.UUIDField(_("lease token"), null=True, blank=True, editable=False)
    lease_owner = models.CharField(_("lease owner"), max_length=255, blank=True, editable=False)
    lease_until = models.DateTimeField(_("lease until"), null=True, blank=True, editable=False)

    objects = LeasedQuerySet.as_manager()

    class Meta:
        abstract = True

    @classmethod
    def lease_values(cls, token: UUID, now: datetime) -> dict[str, Any]:
        """Return the values of a row that this process has just claimed."""
        return {
            "lease_token": token,
            "lease_owner": this_process(),
            "lease_until": now + cls.lease_length,
        }

    def is_held(self, now: datetime, is_gone: Callable[[str], bool] = owner_is_gone) -> bool:
        """Return whether a living worker holds the lease."""
        if self.lease_token is None or self.lease_until is None or self.lease_until <= now:
            return False
        return not is_gone(self.lease_owner)


@dataclass(frozen=True)
class Lease(Generic[Work]):
    """The right to work on one row. ``row`` is as it was before the claim."""

    row: Work
    token: UUID
    taken_at: float = field(default_factory=time.monotonic, compare=False, kw_only=True)

    @property
    def where(self) -> dict[str, Any]:
        """Return the condition that holds for the row until the lease is lost."""
        return {"pk": self.row.pk, "lease_token": self.token}

    def held(self) -> models.QuerySet[Work]:
        """Return the row, or nothing once the lease is lost."""
        # Without joins: were a joined row to change meanwhile, this one would seem lost.
        rows = type(self.row)._default_manager
        return rows.filter(**self.where)

    def renew(self, **changes: Any) -> None:
        """Extend the lease, and apply ``changes`` to the row. Raises LeaseLostError."""
        if not self.held().update(**{**changes, "lease_until": self.until()}):
            raise self.lost()

    def keep(self) -> None:
        """Extend the lease unless it was taken just now. Raises LeaseLostError."""
        if time.monotonic() - self.taken_at > self.row.lease_length.total_seconds() / 12:
            self.renew()

    def until(self) -> datetime:
        """Return the end of a lease that is renewed now."""
        return timezone.now() + self.row.lease_length

    def lock(
        self, rows: models.QuerySet[Work] | None = None, *, of: Sequence[str] = ("self",)
    ) -> Work:
        """Return the row, locked until the transaction ends. Raises LeaseLostError.

        ``rows``: ``held``, with joined rows that are locked in the order of ``of``.
        """
        rows = self.held() if rows is None else rows
        row = rows.select_for_update(no_key=True, of=of).first()
        if row is None:
            raise self.lost()
        return row

    def release(self, **changes: Any) -> bool:
        """Release the lease, and apply ``changes`` to the row.

        Return False if it was lost before; then nothing is changed.
        """
        return bool(self.held().update(**{**RELEASED, **changes}))

    def lost(self) -> Exception:
        """Return the error that reports the lost lease."""
        name = type(self.row)._meta.verbose_name
        return LeaseLostError(f"the lease of {name} {self.row.pk} is lost")


@dataclass(frozen=True)
class LeasedKind:
    """A kind of leased work, for the sweep.

    ``abandoned`` returns the keys of the work that is due and has no living worker; ``enqueue``
    puts one of them into the queue. ``clean_up`` runs first and ends work that is not needed
    any more.
    """

    name: str
    abandoned: Callable[[datetime], Iterable[Any]]
    enqueue: Callable[[Any], object]
    clean_up: Callable[[datetime], object] | None = None

    def sweep(self, now: datetime) -> int:
        """Enqueue what is abandoned; return how many keys were enqueued."""
        if self.clean_up is not None:
            self.clean_up(now)
        keys = list(self.abandoned(now))
        for key in keys:
            self.enqueue(key)
        return len(keys)


def leases_sweep(kinds: Sequence[LeasedKind]) -> dict[str, int]:
    """Enqueue the abandoned work of all kinds; return how many of each.

    Safe to run at any time, by several workers at once. A kind that fails doesn't stop the
    others: its error is raised after them.
    """
    now = timezone.now()
    swept: dict[str, int] = {}
    failed: Exception | None = None
    for kind in kinds:
        try:
            swept[kind.name] = kind.sweep(now)
        except Exception as error:
            logger.exception("The sweep of %s failed.", kind.name)
            failed = failed or error
    if failed is not None:
        raise failed
    return swept


# Locks of the database.


def transaction_lock(key: int) -> None:
    """Wait for and take a lock, which the caller's transaction holds until its end."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


@contextmanager
def advisory_lock(key: int, busy: Exception | None = None) -> Iterator[None]:
    """Hold a lock across transactions, until the block ends.

    If another process holds it, raises ``busy``, or without that waits. The database releases it
    when the process dies.
    """
    with connection.cursor() as cursor:
        if busy is None:
            cursor.execute("SELECT pg_advisory_lock(%s)", [key])
        else:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
            if not cursor.fetchone()[0]:
                raise busy
    try:
        yield
    finally:
        # A lost connection has released its lock.
        with suppress(Error), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
