"""Tell members of staff what happened: each event once to each person and channel.

A worker stores what is to be sent and sends what is due. What was dealt with by then isn't sent.
"""

import random
from collections.abc import Iterable, Iterator
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
from memoryproject.foundation.outgoing_webhooks.sending import next_wait
from memoryproject.foundation.staff_notices import Kind
from memoryproject.foundation.text.characters import cut_at_word
from memoryproject.staff_site.alerts import ANSWER_DELAY
from memoryproject.staff_site.models import Channel, Notification, NotificationSettings
from memoryproject.staff_site.notification_channels import (
    Line,
    NotSentError,
    lines_send,
    missing,
    page_url,
)
from sessions_app.conversations.chat_queries import without_reply
from sessions_app.inbox.needs import is_seen, is_unknown, to_many
from sessions_app.models import Assignment, ChatMark, ReviewedMark, Turn
from sessions_app.models.turns import HANDOVER, WAITING_STATES, Outcome
from sessions_app.presentation.links import conversation_address

KEPT = timedelta(days=30)
# Of a change that is older staff aren't told any more.
NEW = timedelta(hours=1)
MAX_FOUND = 200
# Longer than sending takes: what a killed worker had taken is then sent by another one.
TAKEN = timedelta(minutes=5)
# At this hour daily e-mails are sent.
MORNING = 8
MAX_TOGETHER = 50
MAX_WORDS = 300


def settings_of(user: User) -> NotificationSettings:
    """Return how a person is notified: as they chose, or as everybody is at first."""
    known: NotificationSettings | None = getattr(user, "notification_settings", None)
    return known or NotificationSettings(user=user, time_zone=settings.BUSINESS_TIME_ZONE)


def notices_store(
    kind: str, events: Iterable[tuple[object, UUID | None]], user_id: int | None = None
) -> None:
    """Store each event for each person and channel that wants it; see ``notify``.

    ``events`` is read only if anybody does.
    """
    staff = User.objects.filter(is_active=True, is_staff=True).order_by("id")
    if user_id is not None:
        staff = staff.filter(pk=user_id)
    known = staff.select_related("notification_settings").prefetch_related("push_devices")
    rows = [
        Notification(user=user, target=to, kind=kind, subject=str(key), chat_id=chat, due_at=due_at)
        for user in known
        for to, due_at in _targets(settings_of(user), kind, timezone.now())
        for key, chat in events
    ]
    Notification.objects.bulk_create(rows, ignore_conflicts=True)


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


def _mail_time(person: NotificationSettings, now: datetime) -> datetime:
    """Return when the next e-mail goes out in the person's rhythm."""
    if not person.rhythm:
        return now
    local = now.astimezone(ZoneInfo(person.time_zone))
    hour = local.hour if person.rhythm == 1 else MORNING
    begin = local.replace(hour=hour, minute=0, second=0, microsecond=0)
    return begin if begin > local else begin + timedelta(hours=person.rhythm)


def quiet_end(person: NotificationSettings, now: datetime) -> datetime | None:
    """Return when the person's quiet hours end, which may go over midnight; None outside them."""
    begin, end = person.quiet_from, person.quiet_until
    if begin is None or end is None:
        return None
    local = now.astimezone(ZoneInfo(person.time_zone))
    until = datetime.combine(local.date(), end, local.tzinfo)
    until += timedelta(days=int(until <= local))
    first = until.date() - timedelta(days=int(begin >= end))
    return until if datetime.combine(first, begin, local.tzinfo) <= local else None


# Send what is due.


def notifications_tend(now: datetime) -> int:
    """Find what is to be told, and send all that is due; return how many were sent."""
    # No change of a row makes an answer late or unknown; and a job of the others may be lost.
    for kind in (Kind.ASKED, Kind.FAILED, Kind.UNKNOWN):
        turns = _turns(kind, now).filter(created_at__gt=now - NEW)
        notices_store(kind, turns.values_list("turn_id", "chat_id")[:MAX_FOUND])
    marks = ChatMark.objects.filter(due_at__lte=now, due_at__gt=now - NEW)
    overdue = marks.values_list("chat_id", "due_at")[:MAX_FOUND]
    notices_store(Kind.DUE, [(f"{chat} {at.isoformat()}", chat) for chat, at in overdue])
    due = Notification.objects.filter(due_at__lte=now).order_by()
    groups = list(due.values_list("user", "target").distinct())
    users = User.objects.select_related("notification_settings").in_bulk({pk for pk, _to in groups})
    people = {pk: settings_of(user) for pk, user in users.items()}
    sent = sum(_send_due(people[pk], target, now) for pk, target in groups if pk in people)
    Notification.objects.filter(created_at__lt=now - KEPT).delete()
    return sent


def _turns(kind: str, now: datetime) -> QuerySet[Turn]:
    """Return the answers of this kind that nobody has dealt with."""
    reviewed = ReviewedMark.objects.filter(
        chat=OuterRef("chat"), reviewed_at__gte=OuterRef("created_at")
    )
    late = Q(state__in=WAITING_STATES, not_before=None, created_at__lt=now - ANSWER_DELAY)
    late &= ~to_many()
    which = {
        Kind.ASKED: Q(context__has_key=HANDOVER),
        Kind.FAILED: ~is_seen() & (Q(outcome=Outcome.FAILED) | late),
        Kind.UNKNOWN: ~is_seen() & is_unknown(),
    }
    return without_reply(Turn.objects.filter(which[Kind(kind)], ~Exists(reviewed)))


def _send_due(person: NotificationSettings, target: str, now: datetime) -> int:
    """Send until nothing is due for this person and channel, or sending fails."""
    rows = Notification.objects.filter(user=person.user, target=target, due_at__lte=now)
    if until := quiet_end(person, now):
        rows.update(due_at=until)
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
    wanted = f"{kind}:{row.target.partition(':')[0]}" in person.wanted and user.is_staff
    right = "memories_app.view_memory" if is_memory else "sessions_app.view_chat"
    detail = _detail(row, user, now) if wanted and user.has_perm(right) else None
    if detail is None:
        return None
    if not is_memory and not user.has_perm("sessions_app.view_message"):
        detail = ""
    path = conversation_address(row.chat_id) if row.chat_id else reverse("admin:index")
    if is_memory:
        path = reverse("admin:memories_app_memory_change", args=[row.subject])
    if kind == Kind.REGRESSION:
        path = reverse("admin:sessions_app_checkquestion_changelist")
    words = cut_at_word(" ".join(detail.split()), MAX_WORDS)
    return Line(row.pk, kind, str(kind.label), words, page_url(path))


def _detail(row: Notification, user: User, now: datetime) -> str | None:
    """Return the client's name and words; None if the event is dealt with."""
    if row.kind == Kind.SUGGESTED:
        memory = Memory.objects.filter(pk=row.subject, status=MemoryStatus.PROPOSED).first()
        return memory and memory.content
    name = row.chat.shown_name if row.chat else ""
    of = Assignment.objects.filter(chat=row.chat_id).first()
    if row.kind == Kind.ASSIGNED and (of is None or of.assignee_id != user.pk):
        return None
    if row.kind == Kind.DUE and row.chat and not ChatMark.objects.filter(chat=row.chat).exists():
        return None
    if row.kind not in (Kind.ASKED, Kind.FAILED, Kind.UNKNOWN):
        return name
    turn = _turns(row.kind, now).filter(turn_id=row.subject).select_related("message").first()
    if turn is None or (of and of.assignee_id != user.pk and of.assigned_at >= turn.created_at):
        # Perhaps a colleague has taken it over.
        return None
    words = turn.message.content if turn.message and not turn.message.revoked_at else ""
    return f"{name}: {words}" if words else name
