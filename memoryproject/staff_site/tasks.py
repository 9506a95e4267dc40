"""Background jobs of the dashboard."""

from collections.abc import Sequence
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from memoryproject.staff_site import alerts, notification_delivery
from memoryproject.staff_site.dashboard.rollups import rollups_recount
from memoryproject.staff_site.operations.models_page import KEPT_SECONDS, LAST_CHECK

# A run ends before the next one is due.
MAX_SECONDS = 50.0


def check_alerts() -> int:
    """Find what needs attention and tell the operator; return how much it is."""
    now = timezone.now()
    return alerts.alerts_update(alerts.current_conditions(now), alerts.configured_channels(), now)


def notify_staff(
    kind: str = "", events: Sequence[tuple[str, UUID | None]] = (), user_id: int | None = None
) -> int:
    """Tell members of staff of these events, and of what else is due; return how many were sent."""
    notification_delivery.notices_store(kind, events, user_id)
    return notification_delivery.notifications_tend(timezone.now())


def recount() -> int:
    """Recount the quarters of an hour in which data changed."""
    with timezone.override(ZoneInfo(settings.BUSINESS_TIME_ZONE)):
        return rollups_recount(now=timezone.now(), most_seconds=MAX_SECONDS)


def check_models() -> bool:
    """Check the servers of models for the page of operations; return whether all is well."""
    from memoryproject.staff_site.operations.model_check import Report, model_findings  # noqa: PLC0415 slow

    started, findings = timezone.now(), []
    for finding in model_findings():
        findings.append(finding)
        cache.set(LAST_CHECK, Report(findings, started, is_running=True), KEPT_SECONDS)
    report = Report(findings, timezone.now())
    cache.set(LAST_CHECK, report, KEPT_SECONDS)
    return report.ok
