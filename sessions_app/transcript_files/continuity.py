"""Where the messages of some files stand in a stored conversation, in linear time.

Both are given as signs: two messages with the same role and content have the same sign.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

# One exchange may well be said twice; more than that is taken for the same conversation.
ONE_EXCHANGE = 2
# So many messages have to agree before others that don't are taken for changed ones.
MIN_AGREEING = 3


class Kind(Enum):
    """NEW: nothing of it is stored. OVERLAP: it begins with what the stored ends with.
    STORED: all of it is stored. AMBIGUOUS: a single exchange that was said before, with other
    messages after it. DIFFERS: it tells what is stored, but not the same. EARLIER: it begins
    before what is stored."""

    NEW = "new"
    OVERLAP = "overlap"
    STORED = "stored"
    AMBIGUOUS = "ambiguous"
    DIFFERS = "differs"
    EARLIER = "earlier"


@dataclass(frozen=True)
class Standing:
    """``told``: how many messages are stored already or, where it differs, the first that
    does. ``stored``: the place in the stored conversation that belongs to it. Both from 0."""

    kind: Kind
    told: int = 0
    stored: int = 0


def standing(*, stored: Sequence[bytes], told: Sequence[bytes]) -> Standing:
    """Where ``told`` stands in ``stored``."""
    if not told:
        return Standing(Kind.STORED)
    overlap, inside = _search(stored, told)
    if overlap == len(told):
        return Standing(Kind.STORED, overlap, len(stored) - overlap)
    if inside is not None and len(told) > ONE_EXCHANGE:
        return Standing(Kind.STORED, len(told), inside)
    if overlap:
        return Standing(Kind.OVERLAP, overlap, len(stored) - overlap)
    if inside is not None:
        return Standing(Kind.AMBIGUOUS, len(told), inside)
    return _changed(stored, told) or Standing(Kind.NEW, 0, len(stored))


def _search(stored: Sequence[bytes], told: Sequence[bytes]) -> tuple[int, int | None]:
    """How long a beginning of ``told`` is the end of ``stored``, and where all of it stands
    for the last time before that, if it does (Knuth, Morris, Pratt)."""
    back = _borders(told)
    inside = None
    matched = 0
    for place, sign in enumerate(stored):
        if matched == len(told):
            inside = place - matched
            matched = back[matched - 1]
        while matched and told[matched] != sign:
            matched = back[matched - 1]
        matched += told[matched] == sign
    return matched, inside


def _borders(told: Sequence[bytes]) -> list[int]:
    """For each beginning of ``told``, how long a shorter beginning is also its end."""
    back = [0] * len(told)
    matched = 0
    for place in range(1, len(told)):
        while matched and told[matched] != told[place]:
            matched = back[matched - 1]
        matched += told[matched] == told[place]
        back[place] = matched
    return back


def _changed(stored: Sequence[bytes], told: Sequence[bytes]) -> Standing | None:
    """Where more than half of ``told`` is what stands beside it in ``stored``, if it is laid
    there: the rest of that stretch was changed. Only what was said once is counted, so that
    the time stays linear."""
    times = Counter(stored)
    once = {sign: place for place, sign in enumerate(stored) if times[sign] == 1}
    agreeing = Counter(once[sign] - place for place, sign in enumerate(told) if sign in once)
    if not agreeing:
        return None
    shift, votes = max(agreeing.items(), key=lambda item: (item[1], item[0]))
    first, end = max(0, -shift), min(len(told), len(stored) - shift)
    if votes < MIN_AGREEING or 2 * votes <= end - first:
        return None
    for place in range(first, end):
        if told[place] != stored[place + shift]:
            return Standing(Kind.DIFFERS, place, place + shift)
    return Standing(Kind.EARLIER, first, 0)
