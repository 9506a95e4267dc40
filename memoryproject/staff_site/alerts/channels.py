"""The channels of alerts: an address of the operator's, and e-mail. The log has all of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from django.conf import settings
from django.core.mail import EmailMessage

from memoryproject.staff_site.alerts.conditions import Condition
from memoryproject.staff_site.models import Alert

# For connecting, and for the answer.
SECONDS = 10.0


@dataclass(frozen=True)
class Notice:
    """A notice for a channel. ``is_over``: the problem is solved."""

    key: str
    text: str
    since: str
    is_over: bool

    @property
    def line(self) -> str:
        return f"Over: {self.text}" if self.is_over else self.text


class ChannelError(Exception):
    """A channel could not be told; it is tried again."""


class Channel(Protocol):
    """A way to tell the operator."""

    def tell(self, notice: Notice) -> None:
        """Raises ChannelError."""
        ...


@dataclass(frozen=True)
class WebhookChannel:
    """Posts JSON. ``text`` in it is what Slack, Mattermost and their like show."""

    url: str

    def tell(self, notice: Notice) -> None:
        """See Channel.tell."""
        import httpx  # noqa: PLC0415 slow

        body = {
            "event": "alert.over" if notice.is_over else "alert.raised",
            "key": notice.key,
            "text": notice.line,
            "since": notice.since,
        }
        try:
            httpx.post(self.url, json=body, timeout=SECONDS).raise_for_status()
        except httpx.HTTPStatusError as error:
            raise ChannelError(f"ALERT_WEBHOOK_URL answered {error.response.status_code}") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ChannelError(f"ALERT_WEBHOOK_URL: {type(error).__name__}") from None


@dataclass(frozen=True)
class EmailChannel:
    """Sends an e-mail through the server of EMAIL_URL."""

    to: Sequence[str]

    def tell(self, notice: Notice) -> None:
        """See Channel.tell."""
        subject = f"[WhatsApp memory] {notice.line}"
        body = f"{notice.line}\n\nSince {notice.since} (UTC).\n"
        try:
            # A subject is one line of moderate length.
            EmailMessage(" ".join(subject.split())[:150], body, to=list(self.to)).send()
        except (OSError, ValueError) as error:
            # smtplib's errors are OSErrors.
            raise ChannelError(f"ALERT_EMAILS: {type(error).__name__}") from None


def configured_channels() -> Iterator[Channel]:
    if settings.ALERT_WEBHOOK_URL:
        yield WebhookChannel(settings.ALERT_WEBHOOK_URL)
    if settings.ALERT_EMAILS:
        yield EmailChannel(settings.ALERT_EMAILS)


# Compare what is wrong now with what was, and tell the difference.

logger = logging.getLogger(__name__)

KEPT = timedelta(days=90)


def alerts_open() -> list[Alert]:
    """Return what needs attention now, the oldest first."""
    return list(Alert.objects.filter(over_at=None).order_by("since", "id"))


def alerts_update(found: Iterable[Condition], channels: Iterable[Channel], now: datetime) -> int:
    """Raise alerts for new conditions and end those that are over; return how many are open.

    Each is told once to each channel, at its beginning and at its end. Where a channel fails, all
    are told again by the next call. Old alerts are removed.
    """
    wrong = {condition.key[:400]: condition for condition in found}
    open_ = {alert.key: alert for alert in alerts_open()}
    for key, condition in wrong.items():
        if key not in open_:
            _, is_new = Alert.objects.get_or_create(
                key=key, over_at=None, defaults={"text": condition.text, "since": now}
            )
            if is_new:
                logger.error("Alert: %s", condition.text)
    for key, alert in open_.items():
        if key not in wrong:
            Alert.objects.filter(pk=alert.pk, over_at=None).update(over_at=now)
            logger.warning("Over: %s", alert.text)
    _notify(list(channels), now)
    Alert.objects.filter(over_at__lt=now - KEPT).delete()
    return len(wrong)


def _notify(channels: list[Channel], now: datetime) -> None:
    for alert in Alert.objects.filter(told_at=None).order_by("id"):
        if alert.over_at is not None:
            # It was over before anybody could be told.
            Alert.objects.filter(pk=alert.pk).update(told_at=now, told_over_at=now)
        elif _notify_all(channels, alert, is_over=False):
            Alert.objects.filter(pk=alert.pk).update(told_at=now)
    ended = Alert.objects.filter(over_at__isnull=False, told_over_at=None, told_at__isnull=False)
    for alert in ended.order_by("id"):
        if _notify_all(channels, alert, is_over=True):
            Alert.objects.filter(pk=alert.pk).update(told_over_at=now)


def _notify_all(channels: list[Channel], alert: Alert, *, is_over: bool) -> bool:
    notice = Notice(alert.key, str(alert.text), f"{alert.since:%Y-%m-%d %H:%M}", is_over)
    all_notified = True
    for channel in channels:
        try:
            channel.tell(notice)
        except ChannelError as error:
            logger.warning("An alert could not be told: %s", error)
            all_notified = False
    return all_notified
