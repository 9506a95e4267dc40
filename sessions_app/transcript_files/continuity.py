"""Locate the messages of some files in a stored conversation, in linear time.

Both are given as signs: two messages with the same role and content have the same sign.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

# A single exchange may be repeated by chance; more than that counts as the same conversation.
ONE_EXCHANGE = 2
# So many messages must agree before the differing ones count as changed.
MIN_AGREEING = 3


class Kind(Enum):
    """The relation of the files to the stored conversation.

    NEW: nothing of them is stored. OVERLAP: they begin with the stored end. STORED: all of them
    is stored. AMBIGUOUS: a single exchange that was stored before, with other messages after
    it. DIFFERS: they hold the stored messages with changes. EARLIER: they begin before the
    stored conversation.
    """

    NEW = "new"
    OVERLAP = "overlap"
    STORED = "stored"
    AMBIGUOUS = "ambiguous"
    DIFFERS = "differs"
    EARLIER = "earlier"


@dataclass(frozen=True)
class Standing:
    """The position of the files in the stored conversation.

    ``position``: how many messages of the files are stored already or, if they differ, the
    first that does.
    ``stored``: the matching place in the stored conversation. Both count from 0.
    """

    kind: Kind
    position: int = 0
    stored: int = 0


def standing(*, stored: Sequence[bytes], batch: Sequence[bytes]) -> Standing:
    """Return the position of ``batch`` in ``stored``."""
    if not batch:
        return Standing(Kind.STORED)
    overlap, inside = _search(stored, batch)
    if overlap == len(batch):
        return Standing(Kind.STORED, overlap, len(stored) - overlap)
    if inside is not None and len(batch) > ONE_EXCHANGE:
        return Standing(Kind.STORED, len(batch), inside)
    if overlap:
        return Standing(Kind.OVERLAP, overlap, len(stored) - overlap)
    if inside is not None:
        return Standing(Kind.AMBIGUOUS, len(batch), inside)
    return _changed(stored, batch) or Standing(Kind.NEW, 0, len(stored))


def _search(stored: Sequence[bytes], batch: Sequence[bytes]) -> tuple[int, int | None]:
    """Return the length of the overlap, and the place of the last full match before it.

    The overlap is the longest beginning of ``batch`` that ends ``stored``. The place is None
    without a full match (Knuth, Morris, Pratt).
    """
    back = _borders(batch)
    inside = None
    matched = 0
    for place, sign in enumerate(stored):
        if matched == len(batch):
            inside = place - matched
            matched = back[matched - 1]
        while matched and batch[matched] != sign:
            matched = back[matched - 1]
        matched += batch[matched] == sign
    return matched, inside


def _borders(batch: Sequence[bytes]) -> list[int]:
    """Return for each beginning of ``batch`` the length of its longest border.

    A border is a shorter beginning that is also its end.
    """
    back = [0] * len(batch)
    matched = 0
    for place in range(1, len(batch)):
        while matched and batch[matched] != batch[place]:
            matched = back[matched - 1]
        matched += batch[matched] == batch[place]
        back[place] = matched
    return back


def _changed(stored: Sequence[bytes], batch: Sequence[bytes]) -> Standing | None:
    """Return the first difference if more than half of ``batch`` matches a stretch of ``stored``.

    The rest of that stretch was changed. Only messages that occur once are counted, so that the
    time stays linear.
    """
    times = Counter(stored)
    once = {sign: place for place, sign in enumerate(stored) if times[sign] == 1}
    agreeing = Counter(once[sign] - place for place, sign in enumerate(batch) if sign in once)
    if not agreeing:
        return None
    shift, votes = max(agreeing.items(), key=lambda item: (item[1], item[0]))
    first, end = max(0, -shift), min(len(batch), len(stored) - shift)
    if votes < MIN_AGREEING or 2 * votes <= end - first:
        return None
    for place in range(first, end):
        if batch[place] != stored[place + shift]:
            return Standing(Kind.DIFFERS, place, place + shift)
    return Standing(Kind.EARLIER, first, 0)
