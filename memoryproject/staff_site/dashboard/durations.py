"""Durations of answers, stored as counts of bins whose borders grow by a fixed factor.

A percentile computed from them is off by at most a factor of ``ERROR`` (4.5 %), whatever the
period, and the bins of several quarters of an hour can be added up. All durations below
``MIN_LENGTH`` seconds are one bin.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

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
