"""The usage of chats, and those that reached a limit, for staff's pages."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from sessions_app.models import Chat, ChatAccess, Standing, UsageDay
from sessions_app.models.chats import actor_in

BLOCKED, ALLOWED, UNDECIDED = str(Standing.BLOCKED), str(Standing.ALLOWED), "undecided"
OPTED_OUT, LIMITED = "opted_out", "limited"
# The names of the inbox's filter.
FILTERS = (BLOCKED, ALLOWED, UNDECIDED, OPTED_OUT, LIMITED)

_SUMS = {
    "calls": Sum("model_calls"),
    "prompt": Sum("prompt_tokens"),
    "completion": Sum("completion_tokens"),
    "all_cost": Sum("cost"),
}


@dataclass(frozen=True)
class Used:
    """The usage of a period. ``cost`` is in the currency of MODEL_PRICES."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal = Decimal(0)

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


def used_by(chat_id: UUID, *, today: date, days: int) -> Used:
    """Return what a chat used in the last days, today included."""
    first = today - timedelta(days=days - 1)
    return _used(UsageDay.objects.filter(chat=chat_id, day__gte=first, day__lte=today))


def used_by_day(first: date, last: date) -> dict[date, Used]:
    """Return what all chats, the owner's included, used on each day that has any use."""
    days = UsageDay.objects.filter(day__gte=first, day__lte=last)
    return {row["day"]: _used_of(row) for row in days.values("day").annotate(**_SUMS).order_by()}


def used_by_chat(first: date, last: date, *, most: int) -> list[tuple[UUID, Used]]:
    """Return the chats that cost most, at most ``most`` of them."""
    days = UsageDay.objects.filter(day__gte=first, day__lte=last)
    rows = days.values("chat_id").annotate(**_SUMS)
    order = (F("all_cost").desc(), (F("prompt") + F("completion")).desc(), "chat_id")
    return [(row["chat_id"], _used_of(row)) for row in rows.order_by(*order)[:most]]


def clients_day(today: date) -> tuple[Used, int]:
    """Return the usage of all clients' chats on this day, and how many of them reached a limit."""
    day = UsageDay.objects.filter(day=today, is_owner=False)
    limited = day.aggregate(number=Count("pk", filter=~Q(reached="")))["number"]
    return _used(day), limited


def _used(days: QuerySet[UsageDay]) -> Used:
    return _used_of(days.aggregate(**_SUMS))


def _used_of(row: Mapping[str, Any]) -> Used:
    calls, prompt, completion = (row[name] or 0 for name in ("calls", "prompt", "completion"))
    return Used(calls, prompt, completion, row["all_cost"] or Decimal(0))


def chats_with_access(chats: QuerySet[Chat], wanted: str, *, today: date) -> QuerySet[Chat]:
    """Return those of the chats that fit a name of FILTERS."""
    access = ChatAccess.objects.filter(chat=OuterRef("pk"))
    if wanted in (BLOCKED, ALLOWED):
        return chats.filter(Exists(access.filter(standing=wanted)))
    if wanted == UNDECIDED:
        return chats.exclude(Exists(access.exclude(standing="")))
    if wanted == OPTED_OUT:
        return chats.filter(Exists(access.filter(opted_out_at__isnull=False)))
    reached = UsageDay.objects.filter(chat=OuterRef("pk"), day=today).exclude(reached="")
    return chats.filter(Exists(reached))


# Staff block chats and allow them.

logger = logging.getLogger(__name__)

ACTIONS = {
    str(Standing.BLOCKED): "chat.block",
    str(Standing.ALLOWED): "chat.allow",
    str(Standing.NONE): "chat.undecide",
}


def standing_set(
    *, chat_id: UUID, standing: str, reason: str, by: int | None, actor: Actor, now: datetime
) -> bool:
    """Record what staff decided about a chat; return whether that changed anything.

    ``reason`` is one of StandingReason. ``by``: the staff member's id. Messages that wait for an
    answer are refused when their turn comes, if the chat is blocked by then; so is an answer that
    is not sent yet. Raises Chat.DoesNotExist.
    """
    action = ACTIONS[standing]
    with transaction.atomic():
        # Locked as intake locks it: a message that comes at this moment is before it or after it.
        chat = Chat.objects.select_for_update(no_key=True).get(pk=chat_id)
        access, _made = ChatAccess.objects.get_or_create(chat=chat)
        if (access.standing, access.reason) == (standing, reason):
            return False
        before, access.standing = access.standing, standing
        access.reason, access.decided_at, access.decided_by_id = reason, now, by
        access.save(update_fields=["standing", "reason", "decided_at", "decided_by"])
        audit_record(action, actor, "chat", chat.pk, reason=reason, before=before)
    logger.info("Chat %s is %s by staff.", chat_id, standing or "no longer blocked or allowed")
    return True


def marketing_set(*, chat: Chat, is_stopped: bool, at: datetime) -> bool:
    """Store whether the person wants marketing messages; return whether that is news.

    The latest word holds, in whatever order they come; of two at one time, the one that stops.
    Call it with the chat locked.
    """
    access, _made = ChatAccess.objects.get_or_create(chat=chat)
    if not later_choice(access.marketing_at, at, is_stopped=is_stopped):
        return False
    marketing_store(access, at, actor_in(chat.pk, {}), is_stopped=is_stopped)
    return True


def marketing_store(access: ChatAccess, at: datetime, actor: Actor, *, is_stopped: bool) -> None:
    """Note that the person stopped marketing messages at this time, or wants them again."""
    access.marketing_stopped, access.marketing_at = is_stopped, at
    # Staff may change the other fields at the same time.
    fields = None if access._state.adding else ["marketing_stopped", "marketing_at"]
    access.save(update_fields=fields)
    action = "chat.marketing_stop" if is_stopped else "chat.marketing_resume"
    audit_record(action, actor, "chat", access.chat_id)


def later_choice(known: datetime | None, at: datetime | None, *, is_stopped: bool) -> bool:
    """Return whether a choice at this time takes the place of the one that is known."""
    return at is not None and (known is None or at > known or (at == known and is_stopped))


def access_merge(*, old: Chat, young: Chat) -> None:
    """Merge the decisions and counters of two chats that become one.

    Call it with both chats locked, before the younger one is deleted.
    """
    other = ChatAccess.objects.filter(chat=young).first()
    if other is None:
        return
    kept, _made = ChatAccess.objects.get_or_create(chat=old)
    access_join(kept, other)
    kept.save()


def access_join(kept: ChatAccess, other: ChatAccess) -> None:
    """Put what was decided and counted in ``other`` into ``kept``, without saving it.

    Blocked wins over allowed, and a person who stopped the assistant in one chat has stopped it in
    both. The later word on marketing messages holds.
    """
    if other.standing == Standing.BLOCKED or not kept.standing:
        kept.standing, kept.reason = other.standing or kept.standing, other.reason or kept.reason
        kept.decided_at = other.decided_at or kept.decided_at
        kept.decided_by_id = other.decided_by_id or kept.decided_by_id
    kept.opted_out_at = kept.opted_out_at or other.opted_out_at
    if later_choice(kept.marketing_at, other.marketing_at, is_stopped=other.marketing_stopped):
        kept.marketing_stopped, kept.marketing_at = other.marketing_stopped, other.marketing_at
    kept.noticed_turn = kept.noticed_turn or other.noticed_turn
    begun = [each for each in (kept.hour_began_at, other.hour_began_at) if each]
    kept.hour_began_at = max(begun, default=None)
    kept.hour_messages += other.hour_messages
    kept.hour_commands += other.hour_commands
    kept.hour_told = kept.hour_told or other.hour_told
