"""Counts quarters of an hour, and reads the stored counts together with the missing ones.

One SQL statement counts a quarter from the tables themselves. The schedule stores its result for
the quarters that are marked as changed. A reader takes the stored quarters, and counts the marked
ones with the same SQL, in one statement and so at one moment. The figures are never stale, whether
or not the schedule runs; reading is only slower if many quarters are marked.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any

from django.db import connection, transaction
from django.db.models import IntegerField

from memoryproject.foundation.admin_kit.list_filters import period_named
from memoryproject.foundation.replica import read_connection
from memoryproject.foundation.tables import read_statements
from memoryproject.staff_site.models import Day, Mark, Quarter

# Durations of answers are stored as counts of bins whose borders grow by a fixed factor. A
# percentile computed from them is off by at most a factor of ERROR (4.5 %), whatever the period,
# and the bins of several quarters of an hour can be added up. All durations below MIN_LENGTH
# seconds are one bin.
MIN_LENGTH = 0.05
BINS_AN_OCTAVE = 8
LAST_BIN = 255
ERROR = 2 ** (1 / (2 * BINS_AN_OCTAVE))

# Bin n holds durations from MIN_LENGTH * 2 ** (n / 8) up to the next border, in SQL.
BIN_SQL = (
    f"least({LAST_BIN}, floor({BINS_AN_OCTAVE} * log(2, greatest(extract(epoch FROM "
    f"finished_at - created_at), {MIN_LENGTH}) / {MIN_LENGTH})))::smallint"
)


def seconds_of(number: int) -> float:
    """Return the middle of a bin, which represents it."""
    return float(MIN_LENGTH * 2 ** ((number + 0.5) / BINS_AN_OCTAVE))


def percentile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the seconds within which this share of the answers came, by nearest rank.

    Returns None if there was no answer. counts: answers by number of bin.
    """
    rank = ceil(share * sum(counts.values()))
    for number in sorted(counts):
        rank -= counts[number]
        if rank <= 0 and counts[number]:
            return seconds_of(number)
    return None


# The SQL that counts quarters of an hour, and that reads them: rollups.sql.


COLUMNS = ", ".join(field.column for field in Quarter._meta.concrete_fields if field.column)
# The figures that can be added up.
SUMS = [
    field.name
    for field in Quarter._meta.concrete_fields
    if isinstance(field, IntegerField) and not field.primary_key
]
SUMMED = ", ".join(f"sum({name}) AS {name}" for name in SUMS)
_SQL = read_statements(__file__, bin=BIN_SQL, columns=COLUMNS, sums=SUMMED)

# The number of quarters that are counted in one transaction: those of two days.
AT_ONCE = 192
# An advisory lock number that nothing else uses.
_LOCK = 0xDA58B0A2D


@dataclass(frozen=True)
class Read:
    """The figures that were read.

    ``slots``: the figures between each two borders, as rollups.sql makes them; ``chats``: the
    number of active chats in the whole period; ``fresh``: the numbers of the slots that had to be
    added up.
    """

    slots: list[dict[str, Any]]
    chats: int
    fresh: list[int]


def slots_read(borders: Sequence[datetime]) -> Read:
    """Return the current figures between the borders."""
    values = {"borders": list(borders), "start": borders[0], "end": borders[-1]}
    with read_connection().cursor() as cursor:
        cursor.execute(_SQL["read"], values)
        rows = cursor.fetchall()
    slots = {slot: json.loads(figures) for slot, figures, _ in rows}
    chats = slots.pop(None)
    fresh = [slot for slot, _, known in rows if not known]
    return Read([slots[slot] for slot in sorted(slots)], chats, sorted(fresh))


def quarters_recount() -> int:
    """Recount the newest marked quarters and delete their marks, in one transaction.

    Returns how many; 0 also while another process counts.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        if not _alone(cursor):
            return 0
        marked = Mark.objects.order_by("-quarter").values_list("quarter", flat=True).distinct()
        quarters = list(marked[:AT_ONCE])
        # A later change has a mark that stays. An earlier change is counted below, because each
        # statement sees everything that was committed when it began.
        Mark.objects.filter(quarter__in=quarters).delete()
        Quarter.objects.filter(starts_at__in=quarters).delete()
        cursor.execute(_SQL["drop_days"], {"quarters": quarters})
        cursor.execute(_SQL["store"], {"quarters": quarters})
    return len(quarters)


def days_keep(borders: Sequence[datetime]) -> int:
    """Store the figures of the days between the borders, and delete those of all other days.

    Days that are already stored are skipped. Returns how many were added.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        # Under the lock, so that no quarter is recounted between reading and storing.
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
    """Count until nothing is marked, or for about ``most_seconds``; the next run continues.

    At the end it stores the days of a month except today, which isn't over. Returns how many
    quarters were counted.
    """
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
    """Return whether no other process counts, until the end of the transaction."""
    cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
    return bool(cursor.fetchone()[0])
