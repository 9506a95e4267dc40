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

from memoryproject.foundation.admin_kit.periods import period_named
from memoryproject.foundation.replica import read_connection
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


# The SQL that counts quarters of an hour, and that reads them.


# Figures of each row of ``marked``, the times at which quarters start.
COUNTED_SQL = """
SELECT starts_at, messages, messages_in, messages_out, answers, failed, missed,
       held, unknown, rated_good, rated_bad,
       answer_bins, answer_counts, model_names, prompt_tokens, completion_tokens,
       memories_added, receipts, memories_forgotten
FROM marked
CROSS JOIN LATERAL (
    SELECT count(*) AS messages, count(*) FILTER (WHERE role = 'user') AS messages_in,
           count(*) FILTER (WHERE role = 'assistant') AS messages_out
    FROM sessions_app_message
    WHERE received_at >= starts_at AND received_at < starts_at + interval '15 minutes'
) AS of_messages
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = 'sent') AS answers,
           count(*) FILTER (WHERE state = 'failed') AS failed,
           count(*) FILTER (WHERE state = 'missed') AS missed,
           count(*) FILTER (WHERE state = 'held') AS held,
           count(*) FILTER (WHERE EXISTS (SELECT FROM sessions_app_answerrating
               WHERE turn_id = sessions_app_turn.id AND is_good)) AS rated_good,
           count(*) FILTER (WHERE EXISTS (SELECT FROM sessions_app_answerrating
               WHERE turn_id = sessions_app_turn.id AND NOT is_good)) AS rated_bad
    FROM sessions_app_turn
    WHERE created_at >= starts_at AND created_at < starts_at + interval '15 minutes'
) AS of_turns
CROSS JOIN LATERAL (
    SELECT count(*) AS unknown FROM sessions_app_turn
    JOIN sessions_app_message ON sessions_app_message.message_id = sessions_app_turn.message_id
    JOIN sessions_app_turnreplay ON sessions_app_turnreplay.turn_id = sessions_app_turn.id
    WHERE created_at >= starts_at AND created_at < starts_at + interval '15 minutes'
      AND state = 'sent' AND NOT by_hand AND model <> '' AND terms @> ARRAY['!asks']
      AND (recalled -> 0 -> 'nearest' = 'true' OR NOT recalled @> '[{{"source": "memory"}}]'
           AND NOT recalled @> '[{{"source": "message"}}]')
) AS of_questions
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(bin), '{{}}') AS answer_bins,
           coalesce(array_agg(number), '{{}}') AS answer_counts
    FROM (
        SELECT {bin} AS bin, count(*) AS number FROM sessions_app_turn
        WHERE created_at >= starts_at AND created_at < starts_at + interval '15 minutes'
          AND state = 'sent' AND finished_at IS NOT NULL AND NOT by_hand
        GROUP BY 1
    ) AS bins
) AS of_durations
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(model), '{{}}') AS model_names,
           coalesce(array_agg(prompt), '{{}}') AS prompt_tokens,
           coalesce(array_agg(completion), '{{}}') AS completion_tokens
    FROM (
        SELECT model, coalesce(sum(prompt_tokens), 0) AS prompt,
               coalesce(sum(completion_tokens), 0) AS completion
        FROM sessions_app_turnreplay
        JOIN sessions_app_turn ON sessions_app_turn.id = sessions_app_turnreplay.turn_id
        WHERE created_at >= starts_at AND created_at < starts_at + interval '15 minutes'
          AND (prompt_tokens > 0 OR completion_tokens > 0)
        GROUP BY 1
    ) AS models
) AS of_models
CROSS JOIN LATERAL (
    SELECT count(*) AS memories_added FROM memories_app_memory
    WHERE created_at >= starts_at AND created_at < starts_at + interval '15 minutes'
) AS of_memories
CROSS JOIN LATERAL (
    SELECT count(*) AS receipts,
           coalesce(sum((swept ->> 'memories_app_memory')::bigint), 0) AS memories_forgotten
    FROM sessions_app_forgetreceipt
    WHERE forgotten_at >= starts_at AND forgotten_at < starts_at + interval '15 minutes'
) AS of_receipts
"""

COUNTED = COUNTED_SQL.format(bin=BIN_SQL)

# %(quarters)s are the times at which they start.
STORE_SQL = """
WITH marked AS (SELECT unnest(%(quarters)s::timestamptz[]) AS starts_at)
INSERT INTO dashboard_quarter ({columns})
SELECT {columns} FROM ({counted}) AS counted
WHERE messages > 0 OR memories_added > 0 OR receipts > 0
   OR EXISTS (SELECT FROM sessions_app_turn WHERE created_at >= starts_at
              AND created_at < starts_at + interval '15 minutes')
"""

# The days whose stored figures are outdated.
DROP_DAYS = """
DELETE FROM dashboard_day USING unnest(%(quarters)s::timestamptz[]) AS quarter
WHERE quarter >= starts_at AND quarter < ends_at
"""

# The slots between the %(borders)s, each with its figures and whether they were stored (all as
# JSON, so that one statement returns it), and the number of chats in the whole period as slot null.
READ_SQL = """
WITH borders AS (
    SELECT * FROM unnest(%(borders)s::timestamptz[]) WITH ORDINALITY AS of_slot (at, place)
), slots AS (
    SELECT first.place - 1 AS slot, first.at AS slot_start, last.at AS slot_end
    FROM borders AS first JOIN borders AS last ON last.place = first.place + 1
), known AS (
    SELECT slot, figures FROM slots
    JOIN dashboard_day ON starts_at = slot_start AND ends_at = slot_end
    WHERE NOT EXISTS (
        SELECT FROM dashboard_mark WHERE quarter >= slot_start AND quarter < slot_end
    )
), open AS (
    SELECT * FROM slots WHERE slot NOT IN (SELECT slot FROM known)
), marked AS (
    SELECT DISTINCT quarter AS starts_at FROM open
    JOIN dashboard_mark ON quarter >= slot_start AND quarter < slot_end
), quarters AS MATERIALIZED (
    SELECT slot, every.* FROM open
    JOIN (
        SELECT {columns} FROM dashboard_quarter
        WHERE starts_at >= %(start)s AND starts_at < %(end)s
          AND starts_at NOT IN (SELECT starts_at FROM marked)
        UNION ALL {counted}
    ) AS every ON starts_at >= slot_start AND starts_at < slot_end
), sums AS (
    SELECT slot, {sums} FROM quarters GROUP BY slot
), bins AS (
    SELECT slot, jsonb_agg(jsonb_build_array(bin, number)) AS bins
    FROM (
        SELECT slot, bin, sum(number) AS number
        FROM quarters, unnest(answer_bins, answer_counts) AS of_bin (bin, number)
        GROUP BY slot, bin
    ) AS of_slot
    GROUP BY slot
), tokens AS (
    SELECT slot, jsonb_agg(jsonb_build_array(model, prompt, completion)) AS tokens
    FROM (
        SELECT slot, model, sum(prompt) AS prompt, sum(completion) AS completion
        FROM quarters, unnest(model_names, prompt_tokens, completion_tokens)
             AS of_model (model, prompt, completion)
        GROUP BY slot, model
    ) AS of_slot
    GROUP BY slot
), chats AS (
    SELECT slot, (
        SELECT count(DISTINCT chat_id) FROM (
            SELECT chat_id FROM sessions_app_message
            WHERE received_at >= slot_start AND received_at < slot_end
            UNION ALL SELECT chat_id FROM sessions_app_turn
            WHERE created_at >= slot_start AND created_at < slot_end
        ) AS either
    ) AS chats
    FROM open
)
SELECT slot, figures, true FROM known
UNION ALL
SELECT slot, jsonb_build_object('sums', coalesce(to_jsonb(sums) - 'slot', '{{}}'), 'bins',
    coalesce(bins, '[]'), 'tokens', coalesce(tokens, '[]'), 'chats', chats), false
FROM open
LEFT JOIN sums USING (slot) LEFT JOIN bins USING (slot) LEFT JOIN tokens USING (slot)
JOIN chats USING (slot)
UNION ALL
SELECT null, to_jsonb(count(*)), true FROM sessions_app_chat AS chat
WHERE EXISTS (SELECT FROM sessions_app_message
              WHERE chat_id = chat.id AND received_at >= %(start)s AND received_at < %(end)s)
   OR EXISTS (SELECT FROM sessions_app_turn
              WHERE chat_id = chat.id AND created_at >= %(start)s AND created_at < %(end)s)
"""


COLUMNS = ", ".join(field.column for field in Quarter._meta.concrete_fields if field.column)
STORE = STORE_SQL.format(columns=COLUMNS, counted=COUNTED)
# The figures that can be added up.
SUMS = [
    field.name
    for field in Quarter._meta.concrete_fields
    if isinstance(field, IntegerField) and not field.primary_key
]
SUMMED = ", ".join(f"sum({name}) AS {name}" for name in SUMS)
READ = READ_SQL.format(columns=COLUMNS, counted=COUNTED, sums=SUMMED)

# The number of quarters that are counted in one transaction: those of two days.
AT_ONCE = 192
# An advisory lock number that nothing else uses.
_LOCK = 0xDA58B0A2D


@dataclass(frozen=True)
class Read:
    """The figures that were read.

    ``slots``: the figures between each two borders, as READ_SQL makes them; ``chats``: the number
    of active chats in the whole period; ``fresh``: the numbers of the slots that had to be added
    up.
    """

    slots: list[dict[str, Any]]
    chats: int
    fresh: list[int]


def slots_read(borders: Sequence[datetime]) -> Read:
    """Return the current figures between the borders."""
    values = {"borders": list(borders), "start": borders[0], "end": borders[-1]}
    with read_connection().cursor() as cursor:
        cursor.execute(READ, values)
        rows = cursor.fetchall()
    slots = {slot: json.loads(figures) for slot, figures, _ in rows}
    chats = slots.pop(None)
    fresh = [slot for slot, _, known in rows if not known]
    return Read([slots[slot] for slot in sorted(slots)], chats, sorted(fresh))


def quarters_recount(*, at_once: int = AT_ONCE) -> int:
    """Recount the newest marked quarters and delete their marks, in one transaction.

    Returns how many; 0 also while another process counts.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        if not _alone(cursor):
            return 0
        marked = Mark.objects.order_by("-quarter").values_list("quarter", flat=True).distinct()
        quarters = list(marked[:at_once])
        # A later change has a mark that stays. An earlier change is counted below, because each
        # statement sees everything that was committed when it began.
        Mark.objects.filter(quarter__in=quarters).delete()
        Quarter.objects.filter(starts_at__in=quarters).delete()
        cursor.execute(DROP_DAYS, {"quarters": quarters})
        cursor.execute(STORE, {"quarters": quarters})
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
