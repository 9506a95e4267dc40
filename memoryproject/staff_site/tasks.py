"""What workers do for the dashboard."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils import timezone

from memoryproject.staff_site.dashboard.rollups import rollups_recount

# A run ends before the next one is due.
MAX_SECONDS = 50.0


def recount() -> int:
    """Count anew the quarters of an hour in which something changed."""
    with timezone.override(ZoneInfo(settings.BUSINESS_TIME_ZONE)):
        return rollups_recount(now=timezone.now(), most_seconds=MAX_SECONDS)
