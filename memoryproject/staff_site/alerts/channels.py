"""The channels of alerts: an address of the operator's, and e-mail. The log has all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from django.conf import settings
from django.core.mail import EmailMessage

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
