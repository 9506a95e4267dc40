"""A clock that shows the time of the story.

The messages of the story are weeks old. They go through the services that webhooks and workers
call, which all get the time from Django.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from typing import Any

from django.utils import timezone


class StoryClock:
    """A clock whose ``moment`` is the current time for this process while it is ``set``."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def pass_by(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)

    def now(self, tz: tzinfo | None = None) -> datetime:
        """Return the moment, like datetime.now."""
        return self.moment.astimezone(tz) if tz else self.moment.replace(tzinfo=None)

    @contextmanager
    def set(self) -> Iterator[None]:
        """Replace ``datetime`` in the module of timezone.now().

        This also reaches the defaults of models, which hold the function itself.
        """
        module: Any = timezone
        real = module.datetime
        module.datetime = self
        try:
            yield
        finally:
            module.datetime = real
