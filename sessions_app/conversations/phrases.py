"""The phrases and texts of the languages that people write in.

Each file of ``languages`` has those of one language: see ``docs/whatsapp.md``.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from memories_app.facts.validity import names_day
from memoryproject.foundation.text.characters import fold

FOLDER = Path(__file__).parent / "languages"
MAX_LENGTH = 1_000
MAX_OPENERS = 4
MAX_WORD = 32
# What is to be forgotten must be the speaker's own. With the second it may be asked for. The third
# are of other verbs ("can you remove my wisdom tooth?"): it must be a detail. So must it before the
# verb of the fourth.
FORGET_OWN = ("forget_mine", "forget_asked", "forget_detail", "forget_last")
_OTHERS = ("remember", "remember_fact", "remember_colon", "memories", "forget", "forget_number")
COMMANDS = (*_OTHERS, *FORGET_OWN)
_OWN_WORDS = ("mine", "details", "forget_last_words", "negations", "not_after", "not_wishers")
# "Somebody, who repairs fences": such words, and what follows them, or stands before them.
_SERVICES = ("anyone", "relatives")
# Between the two ends of a range; what a question about the hours must hold; before a date's day.
_HOURS_WORDS = ("until_words", "hours_needs", "date_words")
# Who says "don't forget" of a booking asks people for it.
_OTHERS_WORDS = ("attached_not", "anybody", "thanks_not", "booked_not", "reminders", "bookings")
# What is stopped where nothing else is: offers, not the assistant.
_MARKETING = "marketing"
_LISTS = (*_OTHERS_WORDS, *_OWN_WORDS, *_HOURS_WORDS, *_SERVICES, _MARKETING)
WORD_LISTS = ("fact_words", "not_memories", *_LISTS)
OPENERS = ("openers", "asking_openers", "polite")
SMALL_TALK = ("help", "thanks", "greeting", "acks")
# The wish for a person is "person" anywhere, or is made of the others: "I want", "to talk to",
# "somebody". A denial is "denial" anywhere, or "denial_only" where nothing else is said.
WISHES = ("person", "wish", "contact", "someone")
DENIALS = ("denial", "denial_only")
# What says that something was booked for the person.
BOOKED = "booked"
PERSON_END = "person_end"
# A question about the opening hours: whether it is open, when on a day, or when at all; one that
# asks only with a day ("until when?"); the days from today on, and the words between them.
HOURS_QUESTIONS = ("hours_now", "hours_today", "hours_week", "hours_day")
HOURS_DAYS = ("day_today", "day_tomorrow", "day_after")
# Days that the whole week answers: "weekends".
HOURS_WEEKS = "day_weeks"
# Before a day that goes on asking: "what about Sunday?".
HOURS_MORE = "hours_more"
HOURS = (*HOURS_QUESTIONS, *HOURS_DAYS, HOURS_WEEKS, HOURS_MORE, "hours_fill")
# The fact stands before the first; the second says before a fact that all may know it.
AFTER_FACT, EVERYONE = "remember_after", "everyone"
# "Remember this", "forget this": about the message that is quoted.
QUOTING = (AFTER_FACT, "forget_quoted")
_MORE = (*QUOTING, EVERYONE, BOOKED, PERSON_END, "closers", "no_closers", "asking", "not_facts")
_LIMITS = ("stop", "start", "stop_asked", "stop_marketing")
KINDS = (*COMMANDS, *SMALL_TALK, *OPENERS, *_MORE, *_LIMITS, *WISHES, *DENIALS, *HOURS)
# Accents, niqqud, Arabic vowel signs and invisible direction marks stand inside words.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
_MARKS += "\u200b-\u200f\u202a-\u202e\u2066-\u2069"
# The vowel signs of Hindi are no letters to Python.
_MARKS += "\u0900-\u0903\u093a-\u094f\u0962\u0963"
# People write these as they like: the Turkish i, and in Hindi the moon's dot and the nukta.
_ALIKE = str.maketrans({"ı": "i", "\u0901": "\u0902", "\u093c": None})
# No apostrophe is a part of a word, not even the one that counts as a letter.
_WORD = re.compile(rf"(?:[^\W\u02b9\u02bc]|[{_MARKS}])+")
# Thai, Lao, Burmese, Khmer, the scripts of China and Japan; and Korean, whose words have endings.
_UNPARTED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]"
)
_PIECE = re.compile(r"\(([^()]*)\)|\[([^\[\]]*)\]|([^\s()\[\]]+)")


class Word(NamedTuple):
    """A folded word, and its place in the text."""

    text: str
    start: int
    end: int


class Phrase(NamedTuple):
    """The rest of a message begins after ``size`` words.

    ``prefix``: the rest's first word begins with these letters, which are no part of the rest.
    """

    language: str
    kind: str
    size: int
    prefix: str


@cache
def _contrasts() -> frozenset[str]:
    return frozenset[str]().union(*(data["thanks_not"] for data in languages().values()))


def after_thanks(text: str) -> str:
    """Return what stands behind thanks and a word like "but"; "" without thanks."""
    words = words_of(text[:MAX_LENGTH])
    texts = [word.text for word in words]
    for place in range(len(texts)):
        if found := phrases_at(texts[place:], ("thanks",)):
            end = place + found[0].size
            end += end < len(texts) and texts[end] in _contrasts()
            return text[words[end].start :] if end < len(texts) else ""
    return ""


def words_of(text: str) -> list[Word]:
    found = (
        (fold(match[0]).translate(_ALIKE).strip("_"), *match.span())
        for match in _WORD.finditer(text)
    )
    return [Word(*each) for each in found if each[0]]


def holds_words(text: str, phrases: str) -> bool:
    """Return whether a text holds one of the phrases, a line each, as whole words.

    Where no blanks part the words, and for signs, any place counts.
    """
    words = f" {' '.join(word.text for word in words_of(text))} "
    for phrase in filter(None, map(str.strip, phrases.splitlines())):
        sought = " ".join(word.text for word in words_of(phrase))
        is_whole = sought and not _UNPARTED.search(sought)
        if f" {sought} " in words if is_whole else fold(phrase) in fold(text):
            return True
    return False


@cache
def languages() -> dict[str, dict[str, Any]]:
    """Return the files of the languages, with the word lists folded."""
    read = {}
    # English first: it stands for words that several languages share.
    for path in sorted(FOLDER.glob("*.json"), key=lambda path: (path.stem != "en", path.stem)):
        data = json.loads(path.read_text(encoding="utf-8"))
        for name in WORD_LISTS:
            given = data.get(name, ())
            ends = {each for each in given if each.startswith("*")}
            whole = {word.text for each in given if each not in ends for word in words_of(each)}
            data[name] = frozenset(whole | {f"*{fold(each[1:])[-1]}" for each in ends})
        read[path.stem] = data
    return read


class Piece(NamedTuple):
    """A part of a pattern: one of several words, or of several groups of words."""

    choices: frozenset[tuple[str, ...]]
    lengths: tuple[int, ...]
    is_optional: bool

    def ends(self, words: Sequence[str], starts: set[int]) -> set[int]:
        """Return where the piece ends if it begins at one of these places."""
        ends = {
            start + length
            for start in starts
            for length in self.lengths
            if start + length <= len(words) and tuple(words[start : start + length]) in self.choices
        }
        return ends | starts if self.is_optional else ends


class Pattern(NamedTuple):
    """A phrase of a file. ``ahead`` must follow its pieces, and is no part of it."""

    language: str
    kind: str
    pieces: tuple[Piece, ...]
    ahead: Piece | None
    prefix: str

    def sizes(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield how many words match, and how many of them the phrase takes up."""
        ends = {0}
        for piece in self.pieces:
            ends = piece.ends(words, ends)
        for end in ends:
            matched = max(self.ahead.ends(words, {end}), default=0) if self.ahead else end
            if matched:
                yield matched, end


def words_in(name: str) -> list[str]:
    """Return the words of this list of each language, the English ones first."""
    return [word for data in languages().values() for word in data[name]]


@cache
def patterns() -> dict[str, list[Pattern]]:
    """Return the patterns of all languages, by each word with which they may begin."""
    table: dict[str, list[Pattern]] = defaultdict(list)
    for language, data in languages().items():
        for kind in KINDS:
            for phrase in data.get(kind, ()):
                pattern = _pattern(language, kind, phrase)
                for word in _first_words(pattern):
                    table[word].append(pattern)
    return dict(table)


def phrases_at(words: Sequence[str], kinds: Collection[str]) -> list[Phrase]:
    """Return the phrases of these kinds with which the words begin, the longest ones first."""
    found: dict[Phrase, int] = {}
    for pattern in patterns().get(words[0], ()) if words else ():
        if pattern.kind in kinds:
            for matched, size in pattern.sizes(words):
                phrase = Phrase(pattern.language, pattern.kind, size, pattern.prefix)
                found[phrase] = max(matched, found.get(phrase, 0))
    return sorted(found, key=lambda phrase: -found[phrase])


@cache
def command_starts() -> frozenset[str]:
    """Return the words with which a command may begin."""
    table = patterns().items()
    return frozenset(word for word, found in table if any(p.kind in COMMANDS for p in found))


def _pattern(language: str, kind: str, phrase: str) -> Pattern:
    pieces, ahead, prefix = list[Piece](), None, ""
    for optional, group, word in _PIECE.findall(phrase):
        if word.endswith("+"):
            prefix = fold(word[:-1])
            continue
        choices = (optional or group or word).split("|")
        folded = frozenset(tuple(each.text for each in words_of(choice)) for choice in choices)
        piece = Piece(folded, tuple({len(choice) for choice in folded}), bool(optional))
        if word.startswith("="):
            ahead = piece
        else:
            pieces.append(piece)
    return Pattern(language, kind, tuple(pieces), ahead, prefix)


def _first_words(pattern: Pattern) -> set[str]:
    words = set[str]()
    for piece in (*pattern.pieces, *([pattern.ahead] if pattern.ahead else [])):
        words |= {choice[0] for choice in piece.choices}
        if not piece.is_optional:
            break
    return words


# A message and the phrases in it.

# Shorter words before a full stop are taken for abbreviations: "St. 5".
MAX_ABBREVIATION = 3
# Closing words are so many, or fewer.
MAX_CLOSER = 8
# A phrase has so many words, or fewer.
MAX_PHRASE = 24


class Utterance(NamedTuple):
    """A message, its words, and the end of those that are no closing words."""

    text: str
    words: Sequence[Word]
    end: int

    def holds_question(self) -> bool:
        """Return whether it asks, apart from a closing "ok?"."""
        closed = self.end < len(self.words)
        text = self.text[: self.words[self.end].start] if closed else self.text
        # A mark inside an address of the web asks nothing. No space follows a wide one.
        ends = pairwise(text + " ")
        return "？" in text or any(sign in "?؟" and not after.isalnum() for sign, after in ends)

    def broken_at(self, place: int, signs: str) -> int:
        """Return where the words from ``place`` on are divided by a sign with a space after it.

        It is the place of the next word, or ``end`` where none divides them.
        """
        for next_place in range(place + 1, self.end):
            left, right = self.words[next_place - 1], self.words[next_place]
            gap = self.text[left.end : right.start]
            # "Am 3. Mai": a number before a month ends no sentence, and "St." is an abbreviation.
            ends = left.text.isdecimal() and not names_day(right.text)
            ends |= left.end - left.start > MAX_ABBREVIATION
            if "\n" in gap or any(f"{sign} " in gap and (ends or sign != ".") for sign in signs):
                return next_place
        return self.end


def utterance_of(text: str) -> Utterance | None:
    if len(text) > MAX_LENGTH:
        return None
    words = words_of(text)
    message = Utterance(text, words, len(words))
    while message.end > 1:
        starts = range(max(message.end - MAX_CLOSER, 1), message.end)
        start = next((start for start in starts if _closes(message, start)), 0)
        if not start:
            break
        message = message._replace(end=start)
    return message


def _closes(message: Utterance, start: int) -> bool:
    """Return whether the message's last words, from this place on, are closing or polite ones."""
    found = phrases_in(message, start, kinds=("closers", "polite"))
    # "Table 5 just": some polite words are at the end a part of what is said.
    if size_at(message, start, ("no_closers",)):
        return False
    return any(start + phrase.size == message.end for phrase in found)


def phrases_in(message: Utterance, place: int, kinds: Collection[str] = COMMANDS) -> list[Phrase]:
    words = message.words[place : place + MAX_PHRASE]
    return phrases_at([word.text for word in words], kinds)


def size_at(message: Utterance, place: int, kinds: Collection[str]) -> int:
    """Return the size of the longest phrase at the place; 0: none."""
    found = phrases_in(message, place, kinds) if place < message.end else []
    return found[0].size if found else 0


def beginning(message: Utterance, kinds: Collection[str]) -> list[Phrase]:
    """Return the phrases with which the message begins behind its openers, with their ends."""
    place = 0
    for _ in range(MAX_OPENERS + 1):
        if found := phrases_in(message, place, kinds=kinds):
            return [each._replace(size=place + each.size) for each in found]
        if not (size := size_at(message, place, OPENERS)):
            break
        place += size
    return []


def is_for_service(clause: Utterance, begin: int, lists: Mapping[str, frozenset[str]]) -> bool:
    """Return whether anybody is meant who does something: "somebody, who repairs fences"."""
    last = clause.words[-1]
    after = clause.text[last.end :].lstrip()[:MAX_WORD]
    beside = [word.text for word in words_of(after)[:1] if after.startswith(",")]
    is_said = last.text in lists["anyone"] and not lists["relatives"].isdisjoint(beside)
    before = [word.text for word in clause.words[max(begin - 2, 0) : begin]]
    return is_said or not lists["relatives"].isdisjoint(before)


def asked_of_people(message: Utterance, language: str, words: Sequence[str]) -> bool:
    """Return whether words of a message are no fact.

    It is what somebody said, or a request: "cancel my order".
    """
    data = languages()[language]
    while polite := phrases_at(words, OPENERS):
        words = words[polite[0].size :]
    if any(found.language == language for found in phrases_at(words, ("not_facts",))):
        return True
    if re.fullmatch(data.get("request_forms", ""), " ".join(words)):
        return True
    is_reminder = any(word.text in data["reminders"] for word in message.words)
    return is_reminder and not data["bookings"].isdisjoint(words)


def without_polite(message: Utterance) -> Utterance:
    """Return the message without the words of politeness among its words."""
    kept: list[Word] = []
    place = 0
    while place < message.end:
        polite = next(iter(phrases_in(message, place, kinds=("polite",))), None)
        if polite is None:
            kept.append(message.words[place])
        place += polite.size if polite else 1
    return message._replace(words=[*kept, *message.words[message.end :]], end=len(kept))


# Texts that the system itself sends to people.

TEXTS: Mapping[str, dict[str, str]] = {
    name: {code: data["texts"][name] for code, data in languages().items() if name in data["texts"]}
    for name in languages()["en"]["texts"]
}

# DocumentError codes without a text of their own.
SAME_TEXT = {
    "too_slow": "too_complex",
    "too_much_memory": "too_complex",
    "missing": "unfetched",
    "unavailable": "unfetched",
}


def document_failure(code: str) -> str:
    """Return the name of the text that explains why a document can't be read."""
    name = f"document_{SAME_TEXT.get(code, code)}"
    return name if name in TEXTS else "document_damaged"


def counted(thing: str, count: int, language: str) -> str:
    """Return a count in words: "1 page", "12 pages"."""
    words = languages().get(language, {}).get("counted") or languages()["en"]["counted"]
    one, many = words[thing]
    return str(one if count == 1 else many.format(count=count))


def text_for(name: str, language: str, **values: str) -> str:
    """Return the text of that name; in English if the language has none."""
    versions = TEXTS[name]
    return versions.get(language, versions["en"]).format(**values)


def received_text(kind: str, language: str) -> str:
    """Return the answer to a message without readable content."""
    name = f"received_{'audio' if kind == 'voice' else kind}"
    return text_for(name if name in TEXTS else "received_unsupported", language)
