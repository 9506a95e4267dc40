"""The conditions that need somebody's attention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Exists, Min, OuterRef
from django.utils import timezone
from django_q.models import OrmQ, Schedule

from memoryproject.foundation.audit.models import AuditVerification
from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.outside_services.models import (
    OutsideService,
    ServiceName,
    services_sick,
)
from memoryproject.foundation.process.lanes import LANES, lane_of
from memoryproject.foundation.process.storage import free_bytes
from memoryproject.staff_site.broker import BrokerGoneError, clusters, is_redis, takes_jobs
from sessions_app.limits.facade import spent_on
from sessions_app.media.facade import refused_for_room
from sessions_app.models import Turn
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.turns.facade import ACCOUNTS, accounts_refused

# Longer than an answer, its retries and the sweep that takes it up again.
ANSWER_DELAY = timedelta(minutes=10)
JOB_DELAY = timedelta(minutes=10)
SCHEDULE_DELAY = timedelta(minutes=10)
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
    yield from _jobs(now)
    yield from _schedules(now)
    yield from _audit_log()
    yield from _budget(now)
    yield from _files(now)


def _services() -> Iterator[Condition]:
    """Services that don't answer or refuse our account, and what waits for them.

    An outage has one key from what first shows it until nothing waits for it any more.
    """
    refused = {ACCOUNTS[name].service: ACCOUNTS[name].setting for name in accounts_refused()}
    sick = services_sick()
    for service in sick:
        why = service.error or ErrorText("service_paused")
        text = ErrorText("alert_service", service=str(service), why=why)
        if service.name in refused:
            text = _refused(str(service), refused[service.name])
        yield Condition(_key(service.name, service.target), text)
    waiting = {name: _refused(name, setting) for name, setting in refused.items()}
    if Turn.objects.filter(state=TurnState.DEFERRED).exists():
        waiting[ServiceName.CHAT_MODEL] = ErrorText("alert_questions")
    for name, text in waiting.items():
        if not any(service.name == name for service in sick):
            newest = OutsideService.objects.filter(name=name).order_by("-changed_at").first()
            yield Condition(_key(name, newest.target if newest else ""), text)


def _key(name: str, target: str) -> str:
    return f"service:{name}:{target}"


def _refused(service: str, setting: str) -> ErrorText:
    return ErrorText("alert_account", service=service, setting=setting)


def _disk() -> Iterator[Condition]:
    free = free_bytes(settings.DATA_DIR)
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


def _jobs(now: datetime) -> Iterator[Condition]:
    """Jobs that no worker takes, and lanes without workers. Redis doesn't tell when a job came."""
    try:
        alive = {lane_of(each.cluster_id) for each in clusters() if takes_jobs(each)}
    except BrokerGoneError:
        yield Condition("broker", ErrorText("alert_broker"))
        return
    for lane in LANES:
        if lane not in alive:
            yield Condition(f"lane:{lane}", ErrorText("alert_lane", lane=lane))
    if is_redis():
        return
    waiting = OrmQ.objects.filter(lock__lt=now - JOB_DELAY).values("key")
    for row in waiting.annotate(since=Min("lock")).order_by("key"):
        yield Condition(f"queue:{row['key']}", ErrorText("alert_queue", lane=row["key"]))


def _schedules(now: datetime) -> Iterator[Condition]:
    late = Schedule.objects.exclude(repeats=0).filter(next_run__lt=now - SCHEDULE_DELAY)
    for name in late.order_by("name").values_list("name", flat=True):
        yield Condition(f"schedule:{name}", ErrorText("alert_schedule", name=name or ""))


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
