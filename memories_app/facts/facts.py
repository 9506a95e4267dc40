"""Decide whether two texts state the same fact, and whether the newer replaces the older.

Both rules are conservative: two facts that are kept apart cost a line in a list, two facts that
are merged by mistake lose information. Both rules compare keys for equality, so that an index
finds the few relevant texts among any number.
"""

import enum
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from memories_app.facts import lexicon, validity
from memories_app.facts.fact_parser import NUMBER, TEMPORAL, TIME, Token, tokens_of
from memories_app.facts.frames import RENEWING, Frame, frames_of
from memoryproject.foundation.text.characters import fold

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


def folded(text: str) -> str:
    """Return the text in the form in which facts are compared.

    It keeps what folding would lose: the stroke that negates a sign, and raised digits.
    """
    if text.isascii():
        # It has neither of them.
        return fold(text)
    apart = unicodedata.normalize("NFD", text).replace("\u0338", " not ")
    marked = "".join(_unraised(character) for character in apart)
    return fold(marked.replace("’", "'").replace("‘", "'"))


def _unraised(character: str) -> str:
    kind = unicodedata.decomposition(character).partition(" ")[0]
    if kind in ("<super>", "<sub>", "<fraction>"):
        return f" ^{unicodedata.normalize('NFKC', character)} "
    return character


@dataclass(frozen=True)
class Likeness:
    """The form in which a text is compared.

    ``sense`` is equal for texts that state the same, and empty for one that is compared with none;
    ``frames`` are the statements with their
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
        if not self.sense:
            return []
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
    statement = validity.without_periods(content)
    read = pivot(text if statement == content else folded(statement))
    if read != text:
        tokens = tokens_of(read)
    return Likeness(
        _short_hash(sense or text),
        tuple(frames_of(read, tokens, _short_hash, _capitals(content))),
        renewed=statement != content or RENEWING.search(read) is not None,
        first_person=any(token.text in lexicon.FIRST_PERSON for token in tokens),
    )


def _capitals(content: str) -> set[str] | None:
    """Return the words with a capital letter; None if the first one has none."""
    if not content[:1].isupper():
        return None
    return {fold(word) for word in re.findall(r"\w+", content) if word[:1].isupper()}


class Verdict(enum.IntEnum):
    """The relation of a newer text to an older one."""

    BESIDE = 0
    UNSURE = 1
    REPLACES = 2


def verdict_on(*, newer: Likeness, older: Likeness) -> Verdict:
    """Return whether the newer text states another value of the same statement.

    REPLACES: both can't be true at the same time. UNSURE: they could, but probably aren't. None is
    replaced by a frame that isn't certain, or where its own isn't.
    """
    if newer.sense == older.sense:
        return Verdict.BESIDE
    known = {(frame.kind, frame.key): frame for frame in older.frames}
    found = [
        Verdict.REPLACES
        if (frame.sure or newer.renewed) and None not in (frame.sure, other.sure)
        else Verdict.UNSURE
        for frame in newer.frames
        if (other := known.get((frame.kind, frame.key)))
        and not frame.sure is other.sure is None
        and frame.conflicts_with(other, renewed=newer.renewed)
    ]
    return max(found, default=Verdict.BESIDE)


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


# Bring the small words of ten languages to English ones, so that one set of rules reads them all.


# ``renewing``: words that mark a value as a new one, wherever they stand. ``phrases``: English
# ones with their patterns in the other languages. The order counts: longer ones come first.
_PATTERNS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
_RENEWING = "|".join(_PATTERNS["renewing"])
_PHRASES = [(english, "|".join(patterns)) for english, patterns in _PATTERNS["phrases"]]
# A Hebrew preposition is written together with the next word.
_END = r"(?:(?<=\s[בלה])-?|(?!\w))"


def pivot(folded_text: str) -> str:
    """Return a folded text with the small words in English; a long one as it is."""
    if len(folded_text) > validity.MAX_STATEMENT:
        return folded_text
    plain, renewed = _renewing().subn(" ", folded_text)
    folded_text = " ".join(["now", *plain.split()]) if renewed else folded_text
    for english, pattern in _compiled():
        folded_text = pattern.sub(partial(_said, english), folded_text)
    return " ".join(folded_text.split())


def _said(english: str, found: re.Match[str]) -> str:
    """Return the English phrase, with the word that stands inside the other one."""
    return f" {english} ".replace("\\1", next(filter(None, found.groups()), ""))


@cache
def _renewing() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'])(?:{fold(_RENEWING)})(?!\w),?")


@cache
def _compiled() -> list[tuple[str, re.Pattern[str]]]:
    return [
        (english, re.compile(rf"(?<![\w'])(?:{fold(patterns)}){_END}"))
        for english, patterns in _PHRASES
    ]
