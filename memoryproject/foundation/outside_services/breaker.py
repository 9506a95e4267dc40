"""A circuit breaker for each outside service, shared by all processes through the database."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db import Error
from django.db.models import F, Q
from django.dispatch import Signal
from django.utils import timezone
from pybreaker import (
    STATE_CLOSED,
    STATE_HALF_OPEN,
    STATE_OPEN,
    CircuitBreaker,
    CircuitBreakerError,
    CircuitBreakerListener,
    CircuitBreakerStorage,
)

from memoryproject.foundation.outside_services.guards import (
    SICK_AT,
    ServicePausedError,
)
from memoryproject.foundation.outside_services.models import OutsideService

# Longer than any single call: a trial whose process was killed doesn't keep the service paused.
TRIAL = timedelta(minutes=3)


def breaker_call(work: Callable[[], T], shared: SharedState) -> T:
    """Run the work through a breaker with this state.

    Raises ServicePausedError, and what the work raises.
    """
    # One breaker for each call: pybreaker holds a lock while the work runs, and calls of several
    # threads must run side by side.
    breaker = CircuitBreaker(
        fail_max=SICK_AT,
        reset_timeout=shared.pause_seconds,
        exclude=[_is_not_sick],
        listeners=[_Failures(shared)],
        state_storage=shared,
        throw_new_error_on_trip=False,
    )
    try:
        value: T = breaker.call(work)
    except CircuitBreakerError:
        raise ServicePausedError(shared.name) from None
    return value


def _is_not_sick(error: Exception) -> bool:
    return not getattr(error, "sickness", 0)


class _Failures(CircuitBreakerListener):
    def __init__(self, shared: SharedState) -> None:
        self._shared = shared

    def failure(self, cb: CircuitBreaker, exc: BaseException) -> None:
        """Note the error. pybreaker has counted 1; count the rest of its weight."""
        self._shared.note_failure(
            getattr(exc, "sickness_text", ""), getattr(exc, "sickness", 1) - 1
        )


class SharedState(CircuitBreakerStorage):
    """pybreaker's storage in a row of OutsideService, read once at the beginning of a call.

    Losing a write costs little, so a database error is logged and the call goes on.
    """

    def __init__(self, name: str, target: str, pause_seconds: float) -> None:
        """Raises django.db.Error."""
        super().__init__(name)
        self.pause_seconds = pause_seconds
        self._rows = OutsideService.objects.filter(name=name, target=target)
        self._row = self._rows.first() or OutsideService(name=name, target=target)
        self._state = self._row.state
        self._opened_at = self._row.opened_at
        if self._opened_at is not None and self._opened_at > timezone.now():
            # The clock was set back: the service would be left alone for as long.
            self._opened_at = timezone.now() - timedelta(seconds=pause_seconds)
        self._successes = 0
        if self._state == STATE_HALF_OPEN:
            # Another process tries the service. If it takes too long, this one may.
            self._state = STATE_OPEN
            until = self._row.trial_until
            if until is None or until > timezone.now():
                self._opened_at = timezone.now()
            else:
                self._opened_at = timezone.now() - timedelta(seconds=pause_seconds)

    @property
    def state(self) -> str:
        return str(self._state)

    @state.setter
    def state(self, state: str) -> None:
        if state == STATE_HALF_OPEN:
            self._begin_trial()
            return
        before, self._state = self._state, state
        if state == STATE_OPEN:
            self._write(self._open)
        elif before != STATE_CLOSED:
            self._write(self._close)

    @property
    def counter(self) -> int:
        return self._row.failures

    def increment_counter(self) -> None:
        self._write(lambda: self._count(1))

    def reset_counter(self) -> None:
        if self._row.failures:
            self._row.failures = 0
            self._write(lambda: self._rows.filter(failures__gt=0).update(failures=0))

    @property
    def success_counter(self) -> int:
        return self._successes

    def increment_success_counter(self) -> None:
        self._successes += 1

    def reset_success_counter(self) -> None:
        self._successes = 0

    @property
    def opened_at(self) -> datetime | None:
        return self._opened_at

    @opened_at.setter
    def opened_at(self, moment: datetime) -> None:
        self._opened_at = moment

    def note_failure(self, text: str, more: int) -> None:
        """Keep the failure's text and count ``more`` points for it."""
        self._write(lambda: self._count(more, error=text))

    def _count(self, points: int, **values: Any) -> None:
        """Count the points in the row, and read how many there are with those of others."""
        if self._row.pk is None:
            key = {"name": self._row.name, "target": self._row.target}
            self._row, _ = OutsideService.objects.get_or_create(**key)
        self._rows.update(failures=F("failures") + points, changed_at=timezone.now(), **values)
        self._row.refresh_from_db(fields=["failures", "error"])

    def _begin_trial(self) -> None:
        """Become the one that tries the service; others still find it paused."""
        now = timezone.now()
        free = Q(state=STATE_OPEN, opened_at=self._row.opened_at) | Q(
            state=STATE_HALF_OPEN, trial_until__lte=now
        )
        trial = {"state": STATE_HALF_OPEN, "trial_until": now + TRIAL, "changed_at": now}
        if self._write(lambda: self._rows.filter(free).update(**trial)):
            self._state = STATE_HALF_OPEN
        else:
            self._opened_at = now

    def _open(self) -> int:
        now = timezone.now()
        values = {"state": STATE_OPEN, "opened_at": self._opened_at, "changed_at": now}
        fell_sick = self._rows.filter(state=STATE_CLOSED).update(sick_since=now, **values)
        if not fell_sick:
            return self._rows.update(**values)
        self._row.refresh_from_db()
        logger.error("%s doesn't answer and is left alone for now: %s", self._row, self._row.error)
        service_changed.send(OutsideService, service=self._row, is_sick=True)
        return fell_sick

    def _close(self) -> int:
        values = {"state": STATE_CLOSED, "failures": 0, "changed_at": timezone.now()}
        values |= {"sick_since": None, "opened_at": None, "trial_until": None, "error": ""}
        recovered = self._rows.exclude(state=STATE_CLOSED).update(**values)
        if recovered:
            logger.warning("%s answers again.", self._row)
            service_changed.send(OutsideService, service=self._row, is_sick=False)
        return recovered

    def _write(self, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except Error as error:
            logger.warning("The state of %s can't be written: %s", self._row, error)
            return None


# The signals of outside services.


# Sent once when a service falls sick and once when it has recovered.
# Arguments: service (OutsideService), is_sick (bool).
service_changed = Signal()


T = TypeVar("T")

logger = logging.getLogger(__name__)
