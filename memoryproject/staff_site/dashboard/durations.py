"""How long answers took, kept as counts of bins whose borders grow by a fixed factor.

A percentile told from them is off by at most a factor of ``ERROR`` (4.5 %), whatever the period,
and bins of quarters of an hour simply add up. Below ``MIN_LENGTH`` seconds all is one bin.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

MIN_LENGTH = 0.05
BINS_AN_OCTAVE = 8
LAST_BIN = 255
ERROR = 2 ** (1 / (2 * BINS_AN_OCTAVE))

# Bin n holds what took from MIN_LENGTH * 2 ** (n / 8) up to the next border, in SQL.
BIN_SQL = (
    f"least({LAST_BIN}, floor({BINS_AN_OCTAVE} * log(2, greatest(extract(epoch FROM "
    f"finished_at - created_at), {MIN_LENGTH}) / {MIN_LENGTH})))::smallint"
)


def seconds_of(number: int) -> float:
    """The middle of a bin, by which it is told."""
    return float(MIN_LENGTH * 2 ** ((number + 0.5) / BINS_AN_OCTAVE))


def percentile(counts: Mapping[int, int], share: float) -> float | None:
    """The seconds within which this share of the answers came, by nearest rank; None where
    there was none.

    counts: answers by number of bin.
    """
    rank = ceil(share * sum(counts.values()))
    for number in sorted(counts):
        rank -= counts[number]
        if rank <= 0 and counts[number]:
            return seconds_of(number)
    return None
