"""The ways to members of staff: browser push, e-mail, Telegram, and a webhook of their own."""

import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _, ngettext

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.network.addresses import PostError
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from memoryproject.foundation.outgoing_webhooks.sending import body_of, headers_of
from memoryproject.foundation.process.own_address import absolute_url
from memoryproject.staff_site.models import Channel, NotificationSettings, PushDevice
from sessions_app.conversations.chat_queries import chat_name
from sessions_app.webhook_endpoints.dependencies import build_address_rules

# For connecting, and for the answer.
SECONDS = 10.0
DAY_SECONDS = 24 * 60 * 60
# Push services take 4,096 bytes, encrypted; a character has at most four.
PUSH_CHARACTERS = 600
# Telegram counts in UTF-16, where most emojis are two.
TELEGRAM_BYTES = 2 * 4000
# By these a push service says that the browser takes no more.
GONE = (404, 410)
# Of the client's errors (4xx), those that are over after a while.
BUSY = (408, 425, 429)


class Line(NamedTuple):
    """One event for one person. ``detail``: a client's words, "" where they aren't shown.

    ``url``: of its page; without BASE_URL only the path of it.
    """

    key: UUID
    kind: str
    title: str
    detail: str
    url: str

    @property
    def text(self) -> str:
        return f"{self.title} – {self.detail}" if self.detail else self.title


class NotSentError(Exception):
    """It could not be sent. ``status``: the HTTP status, if there is one; ``wait``: the seconds
    that the receiver asked for."""

    def __init__(self, why: str, status: int = 0, wait: float | None = None) -> None:
        super().__init__(why)
        self.is_permanent = 400 <= status < 500 and status not in BUSY
        self.status, self.wait = status, wait


def missing(channel: str, person: NotificationSettings) -> str:
    """Return what is missing before this channel reaches the person; "" if nothing is."""
    if channel == Channel.EMAIL and not settings.EMAIL_URL:
        return _("No mail server is set up: the operator sets EMAIL_URL.")
    if channel == Channel.TELEGRAM and not settings.TELEGRAM_BOT_TOKEN:
        return _("No bot is set up: the operator sets TELEGRAM_BOT_TOKEN.")
    own = {
        "push": (person.user.push_devices.all(), _("Push is on in no browser of yours.")),
        "email": (person.user.email, _("Your account has no e-mail address.")),
        "telegram": (person.telegram_chat, _("Your id at Telegram is missing.")),
        "webhook": (person.webhook_url, _("The address is missing.")),
    }
    known, text = own[channel]
    return "" if known else text


def lines_send(person: NotificationSettings, target: str, lines: Sequence[Line]) -> None:
    """Send these events to one person; a webhook takes one at a time. Raises NotSentError."""
    channel, _colon, device = target.partition(":")
    count = len(lines)
    several = ngettext("%(count)d event", "%(count)d events", count) % {"count": count}
    # Without a client's words.
    heading = lines[0].title if count == 1 else several
    text = "\n\n".join(f"{line.text}\n{line.url}" for line in lines)
    if channel == Channel.EMAIL:
        _mail(person.user.email, heading, text)
    elif channel == Channel.TELEGRAM:
        # A longer text ends somewhere: its first line says how many events there are.
        _telegram(person.telegram_chat, text if count == 1 else f"{heading}\n\n{text}")
    elif channel == Channel.WEBHOOK:
        _webhook(person, lines[0])
    elif found := PushDevice.objects.filter(pk=device, user=person.user).first():
        inbox = page_url(reverse("admin:sessions_app_chat_changelist"))
        only = lines[0] if count == 1 else Line(lines[0].key, "", heading, "", inbox)
        _push(found, only)


def page_url(path: str) -> str:
    """Return the address of a page; without BASE_URL only its path."""
    return absolute_url(path) or path


def _mail(to: str, heading: str, text: str) -> None:
    try:
        EmailMessage(f"[WhatsApp memory] {heading}", text, to=[to]).send()
    except (OSError, ValueError) as error:
        # smtplib's errors are OSErrors. Their texts may repeat the address.
        raise NotSentError(ErrorText("mail_failed", kind=type(error).__name__)) from None


def _telegram(chat: str, text: str) -> None:
    """Call sendMessage of the Bot API. Its address holds the token: no error names it."""
    import httpx  # noqa: PLC0415 slow

    url = f"{settings.TELEGRAM_API_URL}/bot{settings.TELEGRAM_BOT_TOKEN}/sendMessage"
    cut = text.encode("utf-16-le")[:TELEGRAM_BYTES].decode("utf-16-le", "ignore")
    body = {"chat_id": chat, "text": cut}
    why = wait = None
    try:
        answer = httpx.post(url, json=body, timeout=SECONDS)
        payload = answer.json()
        why, wait = payload.get("description"), payload.get("parameters", {}).get("retry_after")
    except (httpx.HTTPError, httpx.InvalidURL):
        raise NotSentError(ErrorText("service_unreachable")) from None
    except (ValueError, AttributeError):
        # Something else than the Bot API has answered.
        pass
    if not answer.is_success:
        status = answer.status_code
        text = ErrorText("telegram_status", status=status, why=str(why or "")[:200])
        raise NotSentError(text, status, wait if isinstance(wait, int) else None)


def _webhook(person: NotificationSettings, line: Line) -> None:
    """Post an event in the form of all webhooks, signed by the person's own secret."""
    now, data = timezone.now(), {"kind": line.kind, "text": line.text, "url": line.url}
    event = WebhookDelivery(
        event_id=line.key, event_type="staff.notification", data=data, occurred_at=now
    )
    body = body_of(event, chat_name)
    sender = WebhookEndpoint(secret=person.webhook_secret)
    _post(person.webhook_url, headers_of(event, sender, body=body, now=now), body)


def _push(device: PushDevice, line: Line) -> None:
    """Push by RFC 8030, encrypted for the browser (RFC 8291). Remove a dead subscription."""
    import http_ece  # noqa: PLC0415 slow
    import jwt  # noqa: PLC0415 slow
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 slow

    words = line.detail[:PUSH_CHARACTERS] if settings.PUSH_SHOWS_TEXT else ""
    payload = {"title": line.title, "body": words, "url": line.url, "tag": str(line.key)}
    where, is_https = urlsplit(device.endpoint), settings.BASE_URL.startswith("https:")
    claims = {
        "aud": f"{where.scheme}://{where.netloc}",
        "exp": int(time.time()) + DAY_SECONDS // 2,
        "sub": settings.BASE_URL if is_https else f"mailto:{settings.DEFAULT_FROM_EMAIL}",
    }
    token = jwt.encode(claims, push_key(), algorithm="ES256")
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Encoding": "aes128gcm",
        "Authorization": f"vapid t={token}, k={push_public_key()}",
        "TTL": str(DAY_SECONDS),
        "Urgency": "high",
    }
    try:
        body = http_ece.encrypt(
            json.dumps(payload, ensure_ascii=False).encode(),
            private_key=ec.generate_private_key(ec.SECP256R1()),
            # Without its padding; more of it than is needed does no harm.
            dh=urlsafe_b64decode(device.p256dh + "=="),
            auth_secret=urlsafe_b64decode(device.auth + "=="),
        )
        _post(device.endpoint, headers, body)
    except (ValueError, NotSentError) as failure:
        status = getattr(failure, "status", GONE[0])
        if status not in GONE:
            raise
        device.delete()
        raise NotSentError(ErrorText("push_gone"), status) from None


def _post(url: str, headers: Mapping[str, str], body: bytes) -> None:
    """Post to an address that somebody gave, never in a private network. Raises NotSentError."""
    from memoryproject.foundation.integrations.network.checked_transport import HttpPoster  # noqa: PLC0415 slow

    try:
        posted = HttpPoster(build_address_rules()).post(url, headers=headers, body=body)
    except PostError as failure:
        raise NotSentError(error_text(failure)) from None
    if not 200 <= posted.status < 300:
        why = ErrorText("webhook_status", status=posted.status)
        raise NotSentError(why, posted.status, posted.retry_after)


def push_key() -> Any:
    """Return the private key that signs pushes (VAPID, RFC 8292). It follows from SECRET_KEY."""
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 slow

    made = salted_hmac("browser push", "key", settings.SECRET_KEY, algorithm="sha256").digest()
    # Of 248 bits: a key is a number below the order of the curve, which is just below 2 to the 256.
    return ec.derive_private_key(int.from_bytes(made[:31], "big"), ec.SECP256R1())


def push_public_key() -> str:
    """Return the public key as browsers take it."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415 slow

    point = push_key().public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return urlsafe_b64encode(point).decode().rstrip("=")
