"""Alerts: tell the operator once when something needs attention, and once when it is over.

The log has all of them; an address of the operator's and e-mail are channels.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TypeAlias
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import Exists, OuterRef
from django.urls import reverse
from django.utils import timezone
from django_q.models import OrmQ

from memoryproject.foundation.audit.models import AuditVerification
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.foundation.outside_services import models
from memoryproject.foundation.process import own_address, storage
from memoryproject.staff_site import server_state
from memoryproject.staff_site.models import Alert
from sessions_app.conversations.chat_queries import handovers_open
from sessions_app.limits.answer_limits import spent_on
from sessions_app.media.fetch import refused_for_room
from sessions_app.models import Turn
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.turns.facade import accounts_refused

logger = logging.getLogger(__name__)

KEPT = timedelta(days=90)
# Longer than an answer, its retries and the sweep that takes it up again.
ANSWER_DELAY = timedelta(minutes=10)
JOB_DELAY = SCHEDULE_DELAY = timedelta(minutes=10)
# More people than that who wait at once are told of no more.
MAX_HANDOVERS = 20
HANDOVER_ALERT = timedelta(days=1)
FILES_REFUSED = timedelta(days=1)
# So much is left when the alert comes that there is time to act.
LOW_DISK_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True)
class Condition:
    """Something that is wrong now. ``key`` stays the same as long as it is."""

    key: str
    text: ErrorText


def current_conditions(now: datetime) -> Iterator[Condition]:
    """Find what is wrong now."""
    yield from _services()
    yield from _disk()
    yield from _answers(now)
    yield from _handovers(now)
    yield from _jobs(now)
    yield from _schedules(now)
    yield from _audit_log()
    yield from _budget(now)
    yield from _files(now)


def _services() -> Iterator[Condition]:
    """Services that don't answer or refuse our account, and what waits for them.

    An outage has one key from what first shows it until nothing waits for it any more.
    """
    refused = {PROVIDERS[name].service: PROVIDERS[name].key_setting for name in accounts_refused()}
    sick = models.services_sick()
    for service in sick:
        why = service.error or ErrorText("service_paused")
        text = ErrorText("alert_service", service=str(service), why=why)
        if service.name in refused:
            text = _refused(str(service), refused[service.name])
        yield Condition(_key(service.name, service.target), text)
    waiting = {name: _refused(name, setting) for name, setting in refused.items()}
    if Turn.objects.filter(state=TurnState.DEFERRED).exists():
        waiting[models.ServiceName.CHAT_MODEL] = ErrorText("alert_questions")
    for name, text in waiting.items():
        if not any(service.name == name for service in sick):
            newest = models.OutsideService.objects.filter(name=name).order_by("-changed_at").first()
            yield Condition(_key(name, newest.target if newest else ""), text)


def _key(name: str, target: str) -> str:
    return f"service:{name}:{target}"


def _refused(service: str, setting: str) -> ErrorText:
    return ErrorText("alert_account", service=service, setting=setting)


def _disk() -> Iterator[Condition]:
    free = storage.free_bytes(settings.DATA_DIR)
    if free < LOW_DISK_BYTES:
        yield Condition("disk", ErrorText("alert_disk", free=free >> 20))


def _answers(now: datetime) -> Iterator[Condition]:
    """Turns that wait too long. Those that wait for a known time, or for staff, aren't late."""
    put_off = Turn.objects.filter(
        chat=OuterRef("chat"),
        id__lt=OuterRef("pk"),
        state__in=WAITING_STATES,
        not_before__isnull=False,
    )
    waiting = Turn.objects.filter(
        ~Exists(put_off),
        state__in=WAITING_STATES,
        created_at__lt=now - ANSWER_DELAY,
        not_before__isnull=True,
    )
    if number := waiting.count():
        yield Condition("answers", ErrorText("alert_answers", number=number))


def _handovers(now: datetime) -> Iterator[Condition]:
    """Clients who wait for a person. The operator is told of each once; the text names nobody."""
    waiting = handovers_open().filter(created_at__gt=now - HANDOVER_ALERT).order_by("id")
    for turn_id in waiting.values_list("pk", flat=True)[:MAX_HANDOVERS]:
        yield Condition(f"handover:{turn_id}", ErrorText("alert_handover"))


def _jobs(now: datetime) -> Iterator[Condition]:
    """Programs that don't run, and jobs that no worker takes. Redis doesn't tell when one came."""
    try:
        missing = server_state.programs_missing()
    except server_state.BrokerGoneError:
        yield Condition("broker", ErrorText("alert_broker"))
        return
    for name in missing:
        yield Condition(f"program:{name}", ErrorText("alert_program", name=name))
    if server_state.is_redis():
        return
    if OrmQ.objects.filter(lock__lt=now - JOB_DELAY).exists():
        yield Condition("queue", ErrorText("alert_queue"))


def _schedules(now: datetime) -> Iterator[Condition]:
    for late in server_state.schedules_late(now, by=SCHEDULE_DELAY):
        text = ErrorText("alert_schedule", name=late.name or "")
        yield Condition(f"schedule:{late.name}", text)


def _budget(now: datetime) -> Iterator[Condition]:
    """The cost of clients today has reached the budget: no client gets a model's answer."""
    budget = settings.CLIENTS_DAILY_BUDGET
    if budget is None:
        return
    today = timezone.localdate(now, ZoneInfo(settings.BUSINESS_TIME_ZONE))
    if spent_on(today) >= Decimal(str(budget)):
        yield Condition(f"budget:{today}", ErrorText("alert_budget", budget=budget))


def _files(now: datetime) -> Iterator[Condition]:
    """Files of the last day that weren't kept, as a limit of their storage is reached."""
    chats, files = refused_for_room(now - FILES_REFUSED)
    if chats:
        yield Condition("files:chats", ErrorText("alert_files_chats", number=chats))
    if files:
        yield Condition("files:total", ErrorText("alert_files_total", number=files))


def _audit_log() -> Iterator[Condition]:
    """The last verification that came to an end found something."""
    ended = AuditVerification.objects.filter(state=AuditVerification.State.DONE)
    last = ended.order_by("-id").first()
    if last is not None and not (last.report or {}).get("verified", True):
        yield Condition("audit", ErrorText("alert_audit"))


# The channels.

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


# A way to tell the operator. Raises ChannelError.
Channel: TypeAlias = Callable[[Notice], object]


def notice_post(url: str, notice: Notice) -> None:
    """Post JSON. ``text`` in it is what Slack, Mattermost and their like show.

    With BASE_URL it ends with the admin's address, which ``url`` has, too. Raises ChannelError.
    """
    import httpx  # noqa: PLC0415 slow

    address = own_address.absolute_url(reverse("admin:index"))
    body = {
        "event": "alert.over" if notice.is_over else "alert.raised",
        "key": notice.key,
        "text": f"{notice.line} {address}".rstrip(),
        "since": notice.since,
    }
    if address:
        body["url"] = address
    try:
        httpx.post(url, json=body, timeout=SECONDS).raise_for_status()
    except httpx.HTTPStatusError as error:
        raise ChannelError(f"ALERT_WEBHOOK_URL answered {error.response.status_code}") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ChannelError(f"ALERT_WEBHOOK_URL: {type(error).__name__}") from None


def notice_mail(to: Sequence[str], notice: Notice) -> None:
    """Send an e-mail through the server of EMAIL_URL. Raises ChannelError."""
    subject = f"[WhatsApp memory] {notice.line}"
    address = own_address.absolute_url(reverse("admin:index"))
    body = f"{notice.line}\n\nSince {notice.since} (UTC).\n{address}\n".rstrip() + "\n"
    try:
        # A subject is one line of moderate length.
        EmailMessage(" ".join(subject.split())[:150], body, to=list(to)).send()
    except (OSError, ValueError) as error:
        # smtplib's errors are OSErrors.
        raise ChannelError(f"ALERT_EMAILS: {type(error).__name__}") from None


def configured_channels() -> Iterator[Channel]:
    if settings.ALERT_WEBHOOK_URL:
        yield partial(notice_post, settings.ALERT_WEBHOOK_URL)
    if settings.ALERT_EMAILS:
        yield partial(notice_mail, settings.ALERT_EMAILS)


# Compare what is wrong now with what was, and tell the difference.


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
            channel(notice)
        except ChannelError as error:
            logger.warning("An alert could not be told: %s", error)
            all_notified = False
    return all_notified
