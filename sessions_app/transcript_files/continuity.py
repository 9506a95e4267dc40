"""Locate the messages of some files in a stored conversation, in linear time.

Messages are given as signs. The exact sign is equal for the same role and bytes, the loose one
also where only white space, line ends or the Unicode form differ.

Where the signs allow two readings (told twice, or said again), the result is AMBIGUOUS. The
evidence for "told twice" is a pair of different exchanges in a row that the stored conversation
holds exactly once.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from unicodedata import normalize

# Two exchanges: the smallest piece of a conversation that tells it from another one.
PAIR = 4
# So many messages must agree before the differing ones count as changed.
MIN_AGREEING = 3


class Kind(Enum):
    """The relation of the files to the stored conversation.

    NEW: nothing of them is stored. OVERLAP: they begin with the stored end. STORED: all of them
    is stored. AMBIGUOUS: they begin with stored messages, or are among them, and these may have
    been said again. DIFFERS: they hold the stored messages with changes. FORM: the same, and only
    white space, line ends or the Unicode form differ. EARLIER: they begin before the stored
    conversation. NOT_THERE: what the caller called an overlap is none.
    """

    NEW = "new"
    OVERLAP = "overlap"
    STORED = "stored"
    AMBIGUOUS = "ambiguous"
    DIFFERS = "differs"
    FORM = "form"
    EARLIER = "earlier"
    NOT_THERE = "not_there"


@dataclass(frozen=True)
class Standing:
    """The position of the files in the stored conversation.

    ``position``: how many messages of the files are stored already or, if they differ, the
    first that does.
    ``stored``: the matching place in the stored conversation. Both count from 0.
    ``overlap``: how many messages at the beginning of the files may be the stored end.
    """

    kind: Kind
    position: int = 0
    stored: int = 0
    overlap: int = 0


@dataclass
class Signs:
    """The signs of messages, each exact and loose."""

    exact: list[bytes] = field(default_factory=list)
    loose: list[bytes] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.exact)

    def add_message(self, role: str, content: str) -> None:
        """Add the hashes of a text, and of its NFC form without white space."""
        bare = "".join(normalize("NFC", content).split())
        for signs, text in ((self.exact, content), (self.loose, bare)):
            signs.append(role[:1].encode() + hashlib.sha256(text.encode("utf-8")).digest())

    def part(self, start: int, end: int | None = None) -> "Signs":
        return Signs(self.exact[start:end], self.loose[start:end])


def batch_position(*, stored: Signs, batch: Signs, follows: bool) -> Standing:
    """Return the position of ``batch`` in ``stored``.

    ``follows``: the batch's number says that it holds what was said next. Messages that are
    stored already then contradict it, and are AMBIGUOUS.
    """
    if not len(batch):
        return Standing(Kind.STORED)
    # Equal bytes are equal in the loose form, too, whatever the versions of Unicode.
    known = dict(zip(stored.exact, stored.loose, strict=True))
    pairs = zip(batch.exact, batch.loose, strict=True)
    batch = Signs(batch.exact, [known.get(exact, loose) for exact, loose in pairs])
    overlap, inside = _search(stored.loose, batch.loose)
    place = len(stored) - overlap if inside is None or overlap == len(batch) else inside
    length = min(len(stored) - place, len(batch))
    if length:
        is_told_twice = not follows and _holds_evidence(stored.loose, place, length)
        if not is_told_twice:
            return Standing(Kind.AMBIGUOUS, length, place, overlap)
        return _exactly(stored, batch, place, length, overlap)
    if not follows:
        _, within = _search(batch.loose, stored.loose) if stored else (0, None)
        within = _ending(batch.loose, stored.loose) if within is None else within
        if within:
            return Standing(Kind.EARLIER, within, 0)
    return _changed(stored, batch) or Standing(Kind.NEW, 0, len(stored))


def standing_as_given(*, stored: Signs, batch: Signs, overlap: int) -> Standing:
    """Return the position if the first ``overlap`` messages are the stored end, as the caller says.

    They must be the same but for white space, line ends and the Unicode form.
    """
    start = len(stored) - overlap
    if start < 0 or overlap > len(batch):
        return Standing(Kind.NOT_THERE, min(overlap, len(batch)) - 1, 0, overlap)
    for place in range(overlap):
        exact = batch.exact[place] == stored.exact[start + place]
        if not exact and batch.loose[place] != stored.loose[start + place]:
            return Standing(Kind.NOT_THERE, place, start + place, overlap)
    kind = Kind.STORED if overlap and overlap == len(batch) else Kind.OVERLAP
    return Standing(kind if overlap else Kind.NEW, overlap, start, overlap)


def repeated_end(*, before: Sequence[bytes], batch: Sequence[bytes]) -> int:
    """Return how many messages at the end of ``before`` the beginning of ``batch`` repeats."""
    return _search(before, batch)[0]


def holds_different_exchanges(signs: Sequence[bytes]) -> bool:
    """Return whether these messages, from a user's on, hold two different exchanges."""
    return any(
        list(signs[start : start + 2]) != list(signs[start + 2 : start + PAIR])
        for start in range(0, len(signs) - PAIR + 1, 2)
    )


def _holds_evidence(stored: Sequence[bytes], place: int, length: int) -> bool:
    """Return whether this part holds two different exchanges in a row that are stored just once."""
    pairs = Counter(tuple(stored[start : start + PAIR]) for start in range(len(stored) - PAIR + 1))
    for start in range(place, place + length - PAIR + 1, 2):
        pair = tuple(stored[start : start + PAIR])
        if pair[:2] != pair[2:] and pairs[pair] == 1:
            return True
    return False


def _exactly(stored: Signs, batch: Signs, place: int, length: int, overlap: int) -> Standing:
    """Return the position of messages that are stored, or the first whose form differs."""
    for at in range(length):
        if batch.exact[at] != stored.exact[place + at]:
            return Standing(Kind.FORM, at, place + at, overlap)
    kind = Kind.STORED if length == len(batch) else Kind.OVERLAP
    return Standing(kind, length, place, overlap)


def _ending(text: Sequence[bytes], end: Sequence[bytes]) -> int | None:
    """Return where ``text`` ends with all of ``end``, which is not all of it."""
    place = len(text) - len(end)
    return place if end and place > 0 and list(text[place:]) == list(end) else None


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


def _changed(stored: Signs, batch: Signs) -> Standing | None:
    """Return the first difference if more than half of ``batch`` matches a stretch of ``stored``.

    The rest of that stretch was changed. Only messages that occur once are counted, so that the
    time stays linear.
    """
    times = Counter(stored.loose)
    once = {sign: place for place, sign in enumerate(stored.loose) if times[sign] == 1}
    agreeing = Counter(once[sign] - place for place, sign in enumerate(batch.loose) if sign in once)
    if not agreeing:
        return None
    shift, votes = max(agreeing.items(), key=lambda item: (item[1], item[0]))
    first, end = max(0, -shift), min(len(batch), len(stored) - shift)
    if votes < MIN_AGREEING or 2 * votes <= end - first:
        return None
    for place in range(first, end):
        if batch.loose[place] != stored.loose[place + shift]:
            return Standing(Kind.DIFFERS, place, place + shift)
    return Standing(Kind.EARLIER, first, 0)
