"""A clock that stands where the story is. What is told was told weeks ago, through the services
that webhooks and workers call, and they all ask Django for the time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from typing import Any

from django.utils import timezone


class StoryClock:
    """``moment`` is what everybody in this process takes for now, as long as it is ``set``."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def pass_by(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)

    def now(self, tz: tzinfo | None = None) -> datetime:
        """As datetime.now has it."""
        return self.moment.astimezone(tz) if tz else self.moment.replace(tzinfo=None)

    @contextmanager
    def set(self) -> Iterator[None]:
        """timezone.now() asks the name ``datetime`` of its module, which also reaches the
        defaults of models, where the function itself is kept."""
        module: Any = timezone
        real = module.datetime
        module.datetime = self
        try:
            yield
        finally:
            module.datetime = real
