"""Decide whether two texts state the same fact, and whether the newer replaces the older.

Both rules are conservative: two facts that are kept apart cost a line in a list, two facts that
are merged by mistake lose information. Both rules compare keys for equality, so that an index
finds the few relevant texts among any number.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from memories_app.facts import lexicon
from memories_app.facts.attributes import is_renewing
from memories_app.facts.fact_parser import NUMBER, TEMPORAL, TIME, Token, folded, tokens_of
from memories_app.facts.frames import Frame, frames_of
from memories_app.facts.pivot import pivot
from memories_app.facts.validity import without_periods

# Before the key of a subject, and of a speaker; "s" and "f" are before those of a text.
_SUBJECT = "t"
_SPEAKER = "p"
_SPACES = re.compile(r"\s+")
_ENDING = " .,;:!…"
_LEFT_OUT = lexicon.ARTICLES | lexicon.FILLERS | lexicon.ENGLISH_COPULAS


def fact_key(content: str) -> str:
    """Return the hex SHA-256 of the text without differences that a reader ignores.

    These are case, marks, spaces and the punctuation at the end.
    """
    spaced = _SPACES.sub(" ", folded(content)).strip()
    return _hash(spaced.rstrip(_ENDING) or spaced or content)


@dataclass(frozen=True)
class Likeness:
    """The form in which a text is compared.

    ``sense`` is equal for texts that state the same; ``frames`` are the statements with their
    value left open. ``renewed``: it says that its value is a new one.
    ``first_person``: it is about its speaker.
    """

    sense: str
    frames: tuple[Frame, ...]
    renewed: bool = False
    first_person: bool = False

    @property
    def keys(self) -> list[str]:
        """Return the keys; texts that are relevant to each other share at least one."""
        return [f"s{self.sense}", *sorted({f"f{frame.key}" for frame in self.frames})]


def subject_keys(subject: str, speaker: str = "") -> list[str]:
    """Return the keys of what a memory is about, as they stand beside those of its likeness.

    There is none for an empty subject, and for an empty speaker.
    """
    return [
        f"{sign}{_short_hash(fact_key(about))}"
        for sign, about in ((_SUBJECT, subject), (_SPEAKER, speaker))
        if about
    ]


def speakers_in(keys: Iterable[str]) -> set[str]:
    """Return the keys of who said it, which are known only where several people write."""
    return {key for key in keys if key.startswith(_SPEAKER)}


def kept_subject(keys: Iterable[str]) -> list[str]:
    """Return the keys that don't come from the text: they stay when it changes."""
    return [key for key in keys if key.startswith((_SUBJECT, _SPEAKER))]


def likeness_of(content: str) -> Likeness:
    """Return the form in which a text is compared."""
    text = folded(content)
    tokens = tokens_of(text)
    sense = " ".join(token.text for token in _sense(tokens))
    statement = without_periods(content)
    read = pivot(text if statement == content else folded(statement))
    if read != text:
        tokens = tokens_of(read)
    return Likeness(
        _short_hash(sense or text),
        tuple(frames_of(read, tokens, _short_hash)),
        renewed=statement != content or is_renewing(read),
        first_person=any(token.text in lexicon.FIRST_PERSON for token in tokens),
    )


class Verdict(enum.IntEnum):
    """The relation of a newer text to an older one."""

    BESIDE = 0
    UNSURE = 1
    REPLACES = 2


def verdict_on(*, newer: Likeness, older: Likeness) -> Verdict:
    """Return whether the newer text states another value of the same statement.

    REPLACES: both can't be true at the same time. UNSURE: they could, but probably aren't.
    """
    if newer.sense == older.sense:
        return Verdict.BESIDE
    known = {(frame.kind, frame.key): frame for frame in older.frames}
    found = [
        Verdict.REPLACES if frame.sure or newer.renewed else Verdict.UNSURE
        for frame in newer.frames
        if (frame.kind, frame.key) in known
        and frame.conflicts_with(known[frame.kind, frame.key], renewed=newer.renewed)
    ]
    return max(found, default=Verdict.BESIDE)


def replaces(newer: str, older: str) -> bool:
    """Return whether the newer text takes the older one's place."""
    return verdict_on(newer=likeness_of(newer), older=likeness_of(older)) is Verdict.REPLACES


def _sense(tokens: list[Token]) -> list[Token]:
    tokens = _without_opening(tokens)
    kept: list[Token] = []
    loose: list[bool] = []
    prepared = False
    for place, token in enumerate(tokens):
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        if _is_left_out(token, after, first=not kept):
            prepared = token.text in lexicon.TIME_PREPOSITIONS
            continue
        if token.kind == NUMBER and prepared:
            token = Token(TIME, token.text)
        free = token.kind in TEMPORAL and (prepared or not kept or loose[-1])
        kept.append(token)
        loose.append(free)
        prepared = False
    return _time_last(kept, loose)


def _without_opening(tokens: list[Token]) -> list[Token]:
    words = tuple(token.text for token in tokens[:2])
    for opening in lexicon.OPENINGS:
        if words[: len(opening)] == opening and len(tokens) > len(opening):
            return tokens[len(opening) :]
    return tokens


def _is_left_out(token: Token, after: Token | None, *, first: bool) -> bool:
    if token.text in _LEFT_OUT:
        # The text consists only of "the", or of "A" as a mark, and that is its content.
        return after is not None
    if token.text in lexicon.COPULAS:
        return not first and after is not None and after.kind == NUMBER
    if token.text in lexicon.TIME_PREPOSITIONS and after is not None:
        return after.kind in TEMPORAL or (after.kind == NUMBER and after.text.isdigit())
    return False


def _time_last(tokens: list[Token], loose: list[bool]) -> list[Token]:
    """Move the time to the end, if there is one: "on Monday we close" is "we close on Monday".

    With two times their places show which words belong to which, so they stay.
    """
    places = [place for place, free in enumerate(loose) if free]
    temporal = [place for place, token in enumerate(tokens) if token.kind in TEMPORAL]
    together = bool(places) and places[-1] - places[0] + 1 == len(places)
    if not together or temporal != places or len(places) == len(tokens):
        return tokens
    times = sorted((tokens[place] for place in places), key=lambda token: (token.kind, token.text))
    return [token for token, free in zip(tokens, loose, strict=True) if not free] + times


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()


def _short_hash(text: str) -> str:
    return _hash(text)[:24]
