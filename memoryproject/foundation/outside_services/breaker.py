"""A circuit breaker for each outside service, shared by all processes through the database."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db import Error
from django.db.models import F
from django.utils import timezone

from memoryproject.foundation.outside_services.guards import (
    PAUSE_SECONDS,
    SICK_AT,
    ServicePausedError,
)
from memoryproject.foundation.outside_services.models import BreakerState, OutsideService

logger = logging.getLogger(__name__)

# So long a process goes on with what it read of a server, whatever others learn or staff reset.
READ_AGAIN_SECONDS = 5.0

# Longer than any single call: a trial whose process was killed doesn't keep the service paused.
TRIAL = timedelta(minutes=3)
PAUSE = timedelta(seconds=PAUSE_SECONDS)

T = TypeVar("T")


class ServiceGuard:
    """Runs calls of one service, unless the service is paused.

    ``name``: a ServiceName. ``target`` is the service's model and host: without secrets, it is
    shown to staff.
    """

    def __init__(self, name: str, target: str) -> None:
        self._key = {"name": name, "target": target[:300]}
        self._rows = OutsideService.objects.filter(**self._key)

    def call(self, work: Callable[[], T]) -> T:
        """See Guard.call. Where the database is out of reach, the work runs unguarded."""
        try:
            service = self._rows.all().first() or OutsideService(**self._key)
            if service.state != BreakerState.CLOSED and not self._begin_trial(service):
                raise ServicePausedError(self._key["name"])
        except Error as error:
            logger.warning("The state of %s can't be read: %s", self._key["name"], error)
            return work()
        try:
            value = work()
        except Exception as error:
            self._note(service, getattr(error, "sickness", 0), getattr(error, "sickness_text", ""))
            raise
        self._note(service)
        return value

    def _begin_trial(self, service: OutsideService) -> bool:
        """Become the one that tries the service, where its pause is over; others still wait."""
        now = timezone.now()
        if not self._may_be_tried(service, now):
            return False
        # Of several processes that found it so, only one changes it.
        found = self._rows.filter(
            state=service.state, opened_at=service.opened_at, trial_until=service.trial_until
        )
        trial = {"state": BreakerState.HALF_OPEN, "trial_until": now + TRIAL, "changed_at": now}
        return found.update(**trial) > 0

    def _may_be_tried(self, service: OutsideService, now: datetime) -> bool:
        if service.state == BreakerState.HALF_OPEN:
            # Another process tries the service. If it takes too long, this one may.
            return service.trial_until is not None and service.trial_until <= now
        opened = service.opened_at
        # A time in the future: the clock was set back, and the pause would be as much longer.
        return opened is None or opened > now or opened + PAUSE <= now

    def _note(self, service: OutsideService, sickness: int = 0, text: str = "") -> None:
        """Record how the call ended. Losing this costs little: the result counts all the same."""
        try:
            if sickness:
                self._count(service, sickness, text)
            elif service.state != BreakerState.CLOSED:
                self._close(service)
            elif service.failures:
                self._rows.filter(failures__gt=0).update(failures=0)
        except Error as error:
            logger.warning("The state of %s can't be written: %s", service, error)

    def _count(self, service: OutsideService, points: int, text: str) -> None:
        """Count a failure with those of other processes; pause the service where it is due."""
        if service.pk is None:
            service, _ = OutsideService.objects.get_or_create(**self._key)
        was_tried = service.state != BreakerState.CLOSED
        now = timezone.now()
        self._rows.update(failures=F("failures") + points, changed_at=now, error=text)
        service.refresh_from_db()
        if not was_tried and service.failures < SICK_AT:
            return
        paused: dict[str, Any] = {"state": BreakerState.OPEN, "opened_at": now}
        if self._rows.filter(state=BreakerState.CLOSED).update(sick_since=now, **paused):
            logger.error("%s doesn't answer and is left alone for now: %s", service, text)
        else:
            self._rows.update(**paused)

    def _close(self, service: OutsideService) -> None:
        values = {"state": BreakerState.CLOSED, "failures": 0, "changed_at": timezone.now()}
        values |= {"sick_since": None, "opened_at": None, "trial_until": None, "error": ""}
        if self._rows.exclude(state=BreakerState.CLOSED).update(**values):
            logger.warning("%s answers again.", service)


class SharedTraits:
    """What one server accepts, shared by all processes; its key is that of ServiceGuard."""

    def __init__(self, name: str, target: str) -> None:
        self._key = {"name": name, "target": target[:300]}
        self._learned: Mapping[str, Any] = {}
        self._read_at = -math.inf

    def load(self) -> Mapping[str, Any]:
        """See TraitsStore.load. Where the database is out of reach, what was known last counts."""
        if time.monotonic() - self._read_at < READ_AGAIN_SECONDS:
            return self._learned
        try:
            found = OutsideService.objects.filter(**self._key).values_list("learned", flat=True)
            self._learned = found.first() or {}
            self._read_at = time.monotonic()
        except Error as error:
            logger.warning("What %s accepts can't be read: %s", self._key["target"], error)
        return self._learned

    def save(self, learned: Mapping[str, Any]) -> None:
        """See TraitsStore.save."""
        self._learned = learned
        try:
            OutsideService.objects.update_or_create(
                **self._key, defaults={"learned": dict(learned)}
            )
        except Error as error:
            logger.warning("What %s accepts can't be stored: %s", self._key["target"], error)
            return
        logger.warning("Requests to %s are adapted from now on: %s", self._key["target"], learned)
