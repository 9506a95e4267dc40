"""Move and drop the usage of chats."""

from __future__ import annotations

from datetime import date, timedelta

from django.db.models import F

from sessions_app.models import Chat, UsageDay

# Longer than a year, so that one can be compared with the one before.
KEEP_DAYS = 400


def usage_merge(*, old: Chat, young: Chat) -> None:
    """Add the younger chat's usage to that of the older one, with which it becomes one."""
    for used in UsageDay.objects.filter(chat=young):
        there = UsageDay.objects.filter(chat=old, day=used.day)
        added = there.update(
            model_calls=F("model_calls") + used.model_calls,
            prompt_tokens=F("prompt_tokens") + used.prompt_tokens,
            completion_tokens=F("completion_tokens") + used.completion_tokens,
            cost=F("cost") + used.cost,
        )
        if not added:
            UsageDay.objects.filter(pk=used.pk).update(chat=old)
        elif used.reached:
            there.filter(reached="").update(reached=used.reached, reached_at=used.reached_at)


def usage_drop(*, today: date, batch: int = 5_000) -> int:
    """Delete the usage of days that are long past; return how many rows."""
    old = UsageDay.objects.filter(day__lt=today - timedelta(days=KEEP_DAYS))
    dropped = 0
    while keys := list(old.values_list("pk", flat=True)[:batch]):
        dropped += UsageDay.objects.filter(pk__in=keys).delete()[0]
    return dropped
