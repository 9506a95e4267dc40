"""Tell members of staff what happened: each event once to each person and channel.

What is to be sent is stored in the transaction of its change, and a worker sends it. What was
dealt with by then isn't sent.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse
from django.utils import timezone, translation

from memories_app.models import Memory, MemoryStatus
from memoryproject.foundation.errors.stored_errors import error_text
from memoryproject.foundation.notices import Kind, notify
from memoryproject.foundation.outgoing_webhooks.sending import next_wait
from memoryproject.foundation.process.jobs import enqueue
from memoryproject.foundation.text.characters import cut_at_word
from memoryproject.staff_site.alerts import ANSWER_DELAY
from memoryproject.staff_site.models import Channel, Notification, NotificationSettings, Rhythm
from memoryproject.staff_site.notification_channels import (
    Line,
    NotSentError,
    lines_send,
    missing,
    page_url,
)
from sessions_app.conversations.chat_queries import without_reply
from sessions_app.models import Assignment, ReviewedMark, Turn
from sessions_app.models.turns import HANDOVER, WAITING_STATES, Outcome
from sessions_app.presentation.links import conversation_address
from sessions_app.turns.facade import is_seen, is_unknown

KEPT = timedelta(days=30)
# Staff are told of a late answer, or a question without one, when it is no older.
NEW = timedelta(hours=1)
MAX_FOUND = 200
# Longer than sending takes: what a killed worker had taken is then sent by another one.
TAKEN = timedelta(minutes=5)
# At this hour daily e-mails are sent.
MORNING = 8
MAX_TOGETHER = 50
MAX_WORDS = 300


def _is_late(now: datetime) -> Q:
    waiting = Q(state__in=WAITING_STATES, not_before=None)
    return waiting & Q(created_at__lt=now - ANSWER_DELAY)


def _turns(kind: str, now: datetime) -> QuerySet[Turn] | None:
    """Return the answers of this kind that nobody has dealt with; None for events of others."""
    reviewed = ReviewedMark.objects.filter(
        chat=OuterRef("chat"), reviewed_at__gte=OuterRef("created_at")
    )
    which = {
        Kind.ASKED: Q(context__has_key=HANDOVER),
        Kind.FAILED: ~is_seen() & (Q(outcome=Outcome.FAILED) | _is_late(now)),
        Kind.UNKNOWN: ~is_seen() & is_unknown(),
    }
    if kind not in which:
        return None
    return without_reply(Turn.objects.filter(which[Kind(kind)], ~Exists(reviewed)))


def settings_of(user: User) -> NotificationSettings:
    """Return how a person is notified: as they chose, or as everybody is at first."""
    known: NotificationSettings | None = getattr(user, "notification_settings", None)
    return known or NotificationSettings(user=user, time_zone=settings.BUSINESS_TIME_ZONE)


def notices_store(kind: str, chats: Mapping[object, UUID | None], user_id: int | None) -> None:
    """Store what ``notify`` was called with for each person and channel; let a worker send it."""
    staff = User.objects.filter(is_active=True, is_staff=True).order_by("id")
    if user_id is not None:
        staff = staff.filter(pk=user_id)
    known = staff.select_related("notification_settings").prefetch_related("push_devices")
    rows = [
        Notification(
            user=user, kind=kind, target=to, subject=str(subject), chat_id=chat, due_at=due_at
        )
        for user in known
        for to, due_at in _targets(settings_of(user), kind, timezone.now())
        for subject, chat in chats.items()
    ]
    if rows:
        Notification.objects.bulk_create(rows, ignore_conflicts=True)
        enqueue("memoryproject.staff_site.tasks.notify_staff", task_name="notify staff")


def _targets(
    person: NotificationSettings, kind: str, now: datetime
) -> Iterator[tuple[str, datetime]]:
    """Yield where an event of this kind is sent to, and when."""
    for channel in Channel.values:
        if f"{kind}:{channel}" not in person.wanted or missing(channel, person):
            continue
        if channel == Channel.PUSH:
            yield from ((f"{channel}:{one.pk}", now) for one in person.user.push_devices.all())
        else:
            yield channel, _mail_time(person, now) if channel == Channel.EMAIL else now


def _local(person: NotificationSettings, now: datetime) -> datetime:
    return now.astimezone(ZoneInfo(person.time_zone))


def _mail_time(person: NotificationSettings, now: datetime) -> datetime:
    """Return when the next e-mail goes out in the person's rhythm."""
    hour = _local(person, now).replace(minute=0, second=0, microsecond=0)
    morning = hour.replace(hour=MORNING)
    times: dict[str, datetime] = {
        Rhythm.AT_ONCE: now,
        Rhythm.HOURLY: hour + timedelta(hours=1),
        Rhythm.DAILY: morning if morning > now else morning + timedelta(days=1),
    }
    return times[person.rhythm]


def quiet_end(person: NotificationSettings, now: datetime) -> datetime | None:
    """Return when the person's quiet hours end, which may go over midnight; None outside them."""
    begin, end = person.quiet_from, person.quiet_until
    local = _local(person, now)
    # Those that began yesterday, and today.
    for first in (local.date() - timedelta(days=1), local.date()):
        if begin is not None and end is not None:
            last = first + timedelta(days=int(end <= begin))
            until = datetime.combine(last, end, local.tzinfo)
            if datetime.combine(first, begin, local.tzinfo) <= now < until:
                return until
    return None


# Send what is due.


def notifications_tend(now: datetime) -> int:
    """Find what is late or unknown, and send all that is due; return how many were sent."""
    for kind in (Kind.FAILED, Kind.UNKNOWN):
        _find(kind, now)
    due = Notification.objects.filter(due_at__lte=now).order_by()
    groups = list(due.values_list("user", "target").distinct())
    sent = sum(_send_due(user_id, target, now) for user_id, target in groups)
    Notification.objects.filter(created_at__lt=now - KEPT).delete()
    return sent


def _find(kind: Kind, now: datetime) -> None:
    """Let staff be told of answers of this kind where no change of a row makes them so."""
    chosen = [f"{kind}:{channel}" for channel in Channel.values]
    turns = _turns(kind, now)
    if turns is None or not NotificationSettings.objects.filter(wanted__overlap=chosen).exists():
        return
    found = turns.filter(created_at__gt=now - NEW).values_list("turn_id", "chat_id")[:MAX_FOUND]
    chats = dict(found)
    told = Notification.objects.filter(kind=kind, subject__in=map(str, chats))
    known = set(told.values_list("subject", flat=True))
    notify(kind, {turn: chat for turn, chat in chats.items() if str(turn) not in known})


def _send_due(user_id: int, target: str, now: datetime) -> int:
    """Send until nothing is due for this person and channel, or sending fails."""
    rows = Notification.objects.filter(user=user_id, target=target, due_at__lte=now)
    # Read now: rights and choices may have changed since.
    user = User.objects.filter(pk=user_id, is_active=True, is_staff=True).first()
    if user is None:
        rows.update(due_at=None)
        return 0
    person = settings_of(user)
    if until := quiet_end(person, now):
        rows.update(due_at=until)
        return 0
    sent = 0
    with translation.override(person.language):
        while taken := _take(rows, 1 if target == Channel.WEBHOOK else MAX_TOGETHER):
            lines = [line for row in taken if (line := line_of(row, person, now))]
            done: dict[str, Any] = {"due_at": None, "error": ""}
            try:
                if lines:
                    lines_send(person, target, lines)
                    sent += len(lines)
            except NotSentError as failure:
                done = _again(failure, 1 + max(row.attempts for row in taken), now)
            Notification.objects.filter(pk__in=[row.pk for row in taken]).update(**done)
            if done["due_at"]:
                break
    return sent


def _take(rows: QuerySet[Notification], most: int) -> list[Notification]:
    """Take the oldest of these rows, so that no other worker sends them."""
    free = rows.select_related("chat").order_by("due_at", "created_at")[:most]
    until = timezone.now() + TAKEN
    return [row for row in free if rows.filter(pk=row.pk).update(due_at=until)]


def _again(failure: NotSentError, attempts: int, now: datetime) -> dict[str, Any]:
    """Return the columns of what could not be sent: it is due later, or given up."""
    luck = random.random()  # noqa: S311 spreads retries
    wait = next_wait(attempts=attempts, luck=luck, retry_after=failure.wait)
    due_at = None if failure.is_permanent or wait is None else now + wait
    return {"attempts": attempts, "error": error_text(failure), "due_at": due_at}


def line_of(row: Notification, person: NotificationSettings, now: datetime) -> Line | None:
    """Return what this person is told; None if it is dealt with, or no longer for them."""
    kind, user, is_memory = Kind(row.kind), person.user, row.kind == Kind.SUGGESTED
    wanted = f"{kind}:{row.target.partition(':')[0]}" in person.wanted
    right = "memories_app.view_memory" if is_memory else "sessions_app.view_chat"
    detail = _detail(row, user, now) if wanted and user.has_perm(right) else None
    if detail is None:
        return None
    if not is_memory and not user.has_perm("sessions_app.view_message"):
        detail = ""
    path = conversation_address(row.chat_id) if row.chat_id else reverse("admin:index")
    if is_memory:
        path = reverse("admin:memories_app_memory_change", args=[row.subject])
    return Line(row.pk, kind, str(kind.label), detail, page_url(path))


def _detail(row: Notification, user: User, now: datetime) -> str | None:
    """Return the client's name and words; None if the event is dealt with."""
    if row.kind == Kind.SUGGESTED:
        memory = Memory.objects.filter(pk=row.subject, status=MemoryStatus.PROPOSED).first()
        return memory and _shortened(memory.content)
    of = Assignment.objects.filter(chat=row.chat_id).first()
    is_others = of is not None and of.assignee_id != user.pk and of.assigned_at >= row.created_at
    if is_others or (row.kind == Kind.ASSIGNED and of is None):
        return None
    name, turns = row.chat.shown_name if row.chat else "", _turns(row.kind, now)
    if turns is None:
        return name
    turn = turns.filter(turn_id=row.subject).select_related("message").first()
    said = turn.message.content if turn and turn.message and not turn.message.revoked_at else ""
    return turn and (f"{name}: {_shortened(said)}" if said else name)


def _shortened(text: str) -> str:
    return cut_at_word(" ".join(text.split()), MAX_WORDS)
