"""The guard that all processes of one installation share for a service."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.db import Error

from memoryproject.foundation.outside_services.guards import PAUSE_SECONDS

T = TypeVar("T")

logger = logging.getLogger(__name__)


class ServiceGuard:
    """Runs calls of one service through its breaker.

    ``name``: a ServiceName. ``target`` is the service's model and host: without secrets, it is
    shown to staff.
    """

    def __init__(self, name: str, target: str, *, pause_seconds: float = PAUSE_SECONDS) -> None:
        self._name = name
        self._target = target[:300]
        self._pause = pause_seconds

    def call(self, work: Callable[[], T]) -> T:
        """See Guard.call. Where the database is out of reach, the work runs unguarded."""
        from memoryproject.foundation.outside_services.breaker import SharedState, breaker_call  # noqa: PLC0415 slow

        try:
            shared = SharedState(self._name, self._target, self._pause)
        except Error as error:
            logger.warning("The state of %s can't be read: %s", self._name, error)
            return work()
        return breaker_call(work, shared)
