"""The usage of chats, and those that reached a limit, for staff's pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum

from sessions_app.models import Chat, ChatAccess, UsageDay
from sessions_app.models.limits import Standing

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


@dataclass(frozen=True)
class ClientsDay:
    """The usage of all clients' chats on a day, and the number of chats that reached a limit."""

    used: Used
    limited: int


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


def clients_day(today: date) -> ClientsDay:
    """Return the usage of all clients' chats on this day."""
    day = UsageDay.objects.filter(day=today, is_owner=False)
    limited = day.aggregate(number=Count("pk", filter=~Q(reached="")))["number"]
    return ClientsDay(_used(day), limited)


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
