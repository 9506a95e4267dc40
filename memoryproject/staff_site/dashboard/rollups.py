"""Counts quarters of an hour, and reads what was counted together with what wasn't yet.

One piece of SQL counts a quarter from the tables themselves. The schedule stores what it says for
the quarters that are marked as changed; who reads takes the stored quarters, but the marked ones
by the same SQL, in one statement and so of one moment. What is read is never stale, whether or
not the schedule runs; it only is slower where much is marked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from memoryproject.foundation.admin_kit.periods import period_named
from memoryproject.staff_site.dashboard.rollup_sql import COUNTED, DROP_DAYS, READ_SQL, STORE_SQL
from memoryproject.staff_site.models import Day, Mark, Quarter

COLUMNS = ", ".join(field.column for field in Quarter._meta.concrete_fields if field.column)
STORE = STORE_SQL.format(columns=COLUMNS, counted=COUNTED)
READ = READ_SQL.format(columns=COLUMNS, counted=COUNTED)

# So many quarters are counted in one transaction: two days of them.
AT_ONCE = 192
# Any number that nothing else uses.
_LOCK = 0xDA58B0A2D


@dataclass(frozen=True)
class Read:
    """``slots``: the figures between each two borders, as READ_SQL makes them; ``chats``: how
    many were active in the whole; ``fresh``: the numbers of the slots that had to be added up."""

    slots: list[dict[str, Any]]
    chats: int
    fresh: list[int]


def slots_read(borders: Sequence[datetime]) -> Read:
    """What is between the borders, as it is now."""
    values = {"borders": list(borders), "start": borders[0], "end": borders[-1]}
    with transaction.atomic(), connection.cursor() as cursor:
        # A server that compiles what looks like much work takes longer for that than for this.
        cursor.execute("SET LOCAL jit = off")
        cursor.execute(READ, values)
        rows = cursor.fetchall()
    slots = {slot: json.loads(figures) for slot, figures, _ in rows}
    chats = slots.pop(None)
    fresh = [slot for slot, _, known in rows if not known]
    return Read([slots[slot] for slot in sorted(slots)], chats, sorted(fresh))


def quarters_recount(*, at_once: int = AT_ONCE) -> int:
    """Count the newest marked quarters anew and take their marks away, in one transaction.
    Returns how many; 0 also while another process is at it."""
    with transaction.atomic(), connection.cursor() as cursor:
        if not _alone(cursor):
            return 0
        marked = Mark.objects.order_by("-quarter").values_list("quarter", flat=True).distinct()
        quarters = list(marked[:at_once])
        # What changes after this has a mark that stays; what changed before is counted below,
        # for each statement sees all that was committed when it began.
        Mark.objects.filter(quarter__in=quarters).delete()
        Quarter.objects.filter(starts_at__in=quarters).delete()
        cursor.execute(DROP_DAYS, {"quarters": quarters})
        cursor.execute(STORE, {"quarters": quarters})
    return len(quarters)


def days_keep(borders: Sequence[datetime]) -> int:
    """Keep the figures of the days between the borders, and of no others, where they aren't kept
    yet. Returns how many were added."""
    with transaction.atomic(), connection.cursor() as cursor:
        # Alone, so that none of them is counted anew between its reading and its keeping.
        if not _alone(cursor):
            return 0
        Day.objects.exclude(starts_at__in=borders[:-1]).delete()
        found = slots_read(borders)
        days = [
            Day(starts_at=borders[slot], ends_at=borders[slot + 1], figures=found.slots[slot])
            for slot in found.fresh
        ]
        kept = Day.objects.bulk_create(
            days,
            update_conflicts=True,
            unique_fields=["starts_at", "ends_at"],
            update_fields=["figures"],
        )
    return len(kept)


def rollups_recount(*, now: datetime, most_seconds: float) -> int:
    """Count until nothing is marked, or for about so long: the next run goes on then; at the
    end keep the days of a month but for today, which is never over. Returns how many quarters
    were counted."""
    until = time.monotonic() + most_seconds
    counted = 0
    while time.monotonic() < until:
        found = quarters_recount()
        counted += found
        if found < AT_ONCE:
            days_keep(period_named("30", now=now).borders[:-1])
            break
    return counted


def _alone(cursor: Any) -> bool:
    """Whether no other process counts, until the end of the transaction."""
    cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
    return bool(cursor.fetchone()[0])
