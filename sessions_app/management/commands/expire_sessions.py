"""Expire idle sessions and archive old ones."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from memoryproject.foundation.commands import ReportingCommand, flag
from sessions_app.history.clear_session import sessions_due, sessions_overdue
from sessions_app.tasks import archive_sessions, expire_sessions


class Command(ReportingCommand):
    json_help = "Print the counts as JSON."

    arguments = [flag("--dry-run")]

    def run(self, options: dict[str, Any]) -> None:
        counts = _due() if options["dry_run"] else _done()
        verb = "would be " if options["dry_run"] else ""
        text = f"{counts['expired']} sessions {verb}expired, {counts['archived']} {verb}archived."
        self.report(options, counts, text)


def _done() -> dict[str, int]:
    return {"expired": expire_sessions(), "archived": archive_sessions()}


def _due() -> dict[str, int]:
    now = timezone.now()
    timeout = timedelta(hours=settings.SESSION_TIMEOUT_HOURS)
    retention = timedelta(days=settings.EXPIRED_RETENTION_DAYS)
    return {
        "expired": sessions_due(now=now, timeout=timeout).count(),
        "archived": sessions_overdue(now=now, older_than=retention).count(),
    }
