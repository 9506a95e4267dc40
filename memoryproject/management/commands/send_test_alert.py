"""Send a test through every channel of alerts."""

from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from memoryproject.foundation.commands import DeclaredCommand
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.staff_site.alerts import ChannelError, Notice, configured_channels


class Command(DeclaredCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        notice = Notice(
            "test", str(ErrorText("alert_test")), f"{timezone.now():%Y-%m-%d %H:%M}", False
        )
        count, failed = 0, []
        for channel in configured_channels():
            try:
                channel(notice)
                count += 1
            except ChannelError as error:
                failed.append(str(error))
        if failed:
            raise CommandError(f"Not every channel could be reached. {'; '.join(failed)}.")
        if not count:
            raise CommandError("No channel is set: set ALERT_WEBHOOK_URL or ALERT_EMAILS.")
        self.stdout.write(f"{count} channel(s) were notified.")
