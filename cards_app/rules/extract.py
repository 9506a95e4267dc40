"""Choose the sentences of a conversation that tell most: a summary without a chat model."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum
from itertools import chain
from pathlib import Path

from cards_app.rules import phrases, speakers, vocabulary
from cards_app.rules.sentence_words import is_hebrew
from cards_app.rules.session_data import URL, Line, one_line
from cards_app.rules.words import (
    MAX_WORD_LENGTH,
    folded,
    is_question,
    split_sentences,
    split_words,
    without_points,
    word_set,
)
from memoryproject.foundation.text.characters import cut_at_word, cut_between_characters, fold
from memoryproject.foundation.text.tokenizer import Kind as WordKind, kind_of, tokenize

# A longer sentence is divided, after a comma if there is one.
MAX_LENGTH = 300
# Of a question before an answer that makes no sense without it.
MAX_QUESTION = 120
CUT_MARK = "…"
# Where not one sentence fits, the first is cut to this length at least.
MIN_CUT = 20
# Sentences are compared by their length in such steps; short ones aren't favoured too much.
LENGTH_STEP = 20
SHORT = 2
# The longest heading, with its line break.
HEADING_LENGTH = 12

MAX_NAMES = 3
MAX_FIGURES = 4
MAX_WORDS = 10
# What a sentence needs to say something if it holds no figure and no name.
MIN_INFORMATIVE = 2.0

_TABLE = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def _any_of(name: str) -> str:
    return "|".join(_TABLE[name])


_MONEY = re.compile(_any_of("money"), re.IGNORECASE)
# The beginnings of the names of days and months in the languages that the project knows best.
_DAY = re.compile(_any_of("days"), re.IGNORECASE)
# A name follows, also where names have no capitals.
_INTRODUCES = re.compile(_any_of("introduces"), re.IGNORECASE)

# What stays true of a person: allergies, diets, dislikes, wishes, children, animals.
_LASTING_PHRASES = json.loads(Path(__file__).with_name("lasting.json").read_text(encoding="utf-8"))
_LASTING = re.compile(
    rf"(?<![^\W_])(?:{fold('|'.join(chain.from_iterable(_LASTING_PHRASES.values())))})(?![^\W_])"
)
# Greetings and wishes, which dictionaries count as words with content.
_SMALL_TALK = word_set(" ".join(_TABLE["small_talk"]))
_ENGLISH_GRAMMAR = word_set("the is are was i we you my our it of to for and will with at")
_FIGURE = re.compile(r"\d(?:[\d.,:/–-]*\d)?")
_DIGITS = re.compile(r"\d+")
_URL = re.compile(URL, re.IGNORECASE)
_LIST_MARK = re.compile(r"\A[-–•*·]+\s+")
_LIST_NUMBER = re.compile(r"\d{1,2}[.)]")
# What a colon announces stands in the next line.
_ANNOUNCED = re.compile(r":[^\S\n]*\n\s*")
# A sentence that is too long may be split here: after a comma or the like, else at a space.
_PAUSE = re.compile(r"[,;:)–—]\s")
_NO_PUNCTUATION = {ord(character): " " for character in ".,;:!?…\"'()*_~"}
_INFORMATIVE = frozenset({WordKind.COMMON, WordKind.PLAIN, WordKind.NAME})


class Kind(Enum):
    """The function of a sentence, in the order of a summary's sections.

    ``WRITTEN`` is what a chat model wrote; it stands first, without a heading.
    """

    WRITTEN = "written"
    DECISION = "decisions"
    TODO = "todos"
    QUESTION = "questions"
    DETAIL = "details"


_KIND_WORTH = {Kind.WRITTEN: 2.0, Kind.DECISION: 1.5, Kind.TODO: 1.0}
ASSISTANT_WORTH = 0.9
# Of what stays true of a person, beside what figures, days and names add.
LASTING_WORTH = 1.5


@dataclass(frozen=True)
class Said:
    """A message with its order_num, and the day on which it was written if that is known."""

    place: int
    line: Line
    day: date = date.min


@dataclass(frozen=True)
class Entry:
    """A sentence of a summary, on one line.

    ``places``: the order_nums of the messages that it comes from; the one that says it is the last.
    ``speaker``: who said it, as the summary shows it. ``worth``: its value compared with others.
    """

    places: tuple[int, ...]
    kind: Kind
    speaker: str
    text: str
    worth: float

    @property
    def bullet(self) -> str:
        return f"- {self.speaker}{self.text}"

    def is_in(self, shown: set[int]) -> bool:
        """Return whether the messages of these order_nums say it.

        A quoted question may be in another message; what a model wrote may need all of its own.
        """
        return shown.issuperset(self.places if self.kind is Kind.WRITTEN else self.places[-1:])


def entries_dump(entries: Iterable[Entry]) -> str:
    """Return the entries as JSON, to be stored: a list of the fields of each."""
    rows = [(each.places, each.kind.value, each.speaker, each.text, each.worth) for each in entries]
    return json.dumps(rows, ensure_ascii=False)


def entries_load(stored: str) -> list[Entry] | None:
    """Return stored entries; None for a text of versions before 1.1, which stored none."""
    try:
        rows = json.loads(stored)
        if not isinstance(rows, list):
            return None
        return [
            Entry(tuple(places), Kind(kind), speaker, text, worth)
            for places, kind, speaker, text, worth in rows
        ]
    except (ValueError, TypeError):
        return None


def find_entries(messages: Sequence[Said]) -> list[Entry]:
    """Return the sentences of a conversation that tell something, in order.

    Sentences are whole and verbatim, but for one of more than MAX_LENGTH characters, which is
    divided with "…" at the cuts. A short answer has the question before it in brackets. Greetings,
    thanks and bare questions are left out.

    Nothing is redacted, unlike on a card: the summary stays in its chat, and people ask for the
    numbers and names later.
    """
    lines = [each.line for each in messages]
    found_names = vocabulary.find_entities(lines, most=None)
    names = frozenset(word for name in found_names for word in split_words(name))
    words = speakers.section_words(line.content for line in lines)
    found = []
    question: tuple[int, str, str] | None = None
    for place, line in ((each.place, each.line) for each in messages):
        by = ASSISTANT_WORTH if line.role in speakers.NOT_PEOPLE else 1.0
        sentences = _sentences(line.content)
        for number, text in enumerate(sentences):
            kind, shown = _kind(text), text
            places: tuple[int, ...] = (place,)
            worth = by * _worth(text, kind, names)
            if number == 0 and question and question[1] != line.role and _needs_question(text):
                places, shown = (question[0], place), f"({question[2]}) {text}"
                worth = max(worth, by * _worth(shown.replace("?", ""), kind, names))
            if worth:
                found.append(Entry(places, kind, words.speaker(line.role), shown, worth))
        last = sentences[-1] if sentences else ""
        asks = is_question(last) and len(last) <= MAX_QUESTION
        question = (place, line.role, last) if asks else None
    return found


def written_entry(text: str, places: Sequence[int]) -> Entry:
    """Return an entry of what a model wrote."""
    text = one_line(_LIST_MARK.sub("", text))
    worth = _KIND_WORTH[Kind.WRITTEN] + _worth(text, Kind.DETAIL, frozenset())
    return Entry(tuple(places), Kind.WRITTEN, "", text, worth)


def choose_entries(entries: Iterable[Entry], *, longest: int) -> list[Entry]:
    """Return the most telling entries that fit in ``longest`` characters, in order.

    Those come first that hold a figure or a name that no chosen one holds. Of entries with the same
    words the last one stays. The more there are that differ in figures alone, the less each is
    worth; among equals, newer ones are preferred.
    """
    entries = list(entries)
    alike = Counter(_DIGITS.sub("0", same_words(each.text)) for each in entries)
    distinct = {same_words(each.text): each for each in entries}
    value = {
        key: each.worth
        / (alike[_DIGITS.sub("0", key)] * (SHORT + len(each.text) // LENGTH_STEP)) ** 0.5
        for key, each in distinct.items()
    }
    order = sorted(distinct, key=lambda key: (-value[key], -distinct[key].places[-1]))
    ranked = [distinct[key] for key in order]
    room = longest
    chosen: list[Entry] = []
    covered: set[str] = set()
    for repeats in (False, True):
        rest = []
        for each in ranked:
            facts = facts_of(each.text)
            is_known = bool(facts) and facts <= covered
            cost = len(each.bullet) + 1
            cost += HEADING_LENGTH * all(other.kind is not each.kind for other in chosen)
            if is_known > repeats or cost > room + 1:
                rest.append(each)
                continue
            chosen.append(each)
            covered |= facts
            room -= cost
        ranked = rest
    if ranked and not chosen:
        best = ranked[0]
        room = max(longest - HEADING_LENGTH - len(best.bullet) + len(best.text), MIN_CUT)
        return [replace(best, text=cut_at_word(best.text, room))]
    return sorted(chosen, key=lambda each: each.places[-1])


def render_entries(entries: Sequence[Entry]) -> str:
    """Return the entries as text by sections, each in the order of the conversation."""
    words = speakers.section_words(each.text for each in entries)
    rows = []
    for kind in Kind:
        of_kind = [each.bullet for each in entries if each.kind is kind]
        if of_kind and kind is not Kind.WRITTEN:
            rows.append(f"{getattr(words, kind.value)}:")
        rows += of_kind
    return "\n".join(rows)


def summary_text(entries: Sequence[Entry]) -> str:
    """Return the text of a summary; if no model wrote any of it, it says so."""
    text = render_entries(entries)
    if not text or any(each.kind is Kind.WRITTEN for each in entries):
        return text
    return f"({speakers.section_words(each.text for each in entries).excerpts})\n{text}"


def facts_of(text: str) -> set[str]:
    """Return the figures of a text, and its words with a capital inside a sentence."""
    spoken = _spoken(text)
    facts = {_plain_figure(found.group()) for found in _FIGURE.finditer(spoken)}
    for sentence in split_sentences(spoken):
        words = list(split_words(sentence.text))
        facts |= {folded(word) for word in words[1:] if word[0].isupper() and len(word) > 1}
    return facts


def is_unit(word: str) -> bool:
    """Return whether the word names a currency, such as EUR."""
    return _MONEY.fullmatch(word) is not None


def same_words(text: str) -> str:
    """Return a key that is equal for texts with the same words, whatever is between them."""
    return " ".join(folded(text).translate(_NO_PUNCTUATION).split()) or text


def _sentences(content: str) -> list[str]:
    """Return the sentences, each on one line and without a list marker."""
    announced = _ANNOUNCED.sub(": ", content)
    bare = (_LIST_MARK.sub("", one_line(sentence.text)) for sentence in split_sentences(announced))
    return [part for text in bare if not _LIST_NUMBER.fullmatch(text) for part in _parts(text)]


def _kind(sentence: str) -> Kind:
    if is_question(sentence):
        return Kind.QUESTION
    if phrases.tells_decision(sentence):
        return Kind.DECISION
    return Kind.TODO if phrases.tells_todo(sentence) else Kind.DETAIL


def _worth(text: str, kind: Kind, names: frozenset[str]) -> float:
    """Return the value: what people ask for later (figures, money, days, names) counts most.

    0 for a sentence that says nothing to remember.
    """
    spoken = _spoken(text)
    figures = len({_plain_figure(found.group()) for found in _FIGURE.finditer(spoken)})
    named = _names_in(spoken, names)
    informative = informative_words(spoken)
    facts = (1.5 + 0.5 * min(figures, MAX_FIGURES)) * bool(figures)
    facts += 0.7 * bool(_MONEY.search(spoken)) + 0.7 * bool(_DAY.search(spoken))
    facts += 1.5 * bool(_INTRODUCES.search(spoken)) + 0.5 * (spoken != text or "@" in text)
    facts += LASTING_WORTH * bool(_LASTING.search(fold(without_points(spoken))))
    # A name alone is an address: "Thanks, Dana".
    others = informative - informative_words(" ".join(named))
    facts += min(len(named), MAX_NAMES) * (others > 0)
    if kind is Kind.QUESTION:
        return 0.4 * facts if figures or others >= MIN_INFORMATIVE else 0.0
    if not facts and kind is Kind.DETAIL and informative < MIN_INFORMATIVE:
        return 0.0
    return _KIND_WORTH.get(kind, 0.0) + facts + 0.1 * min(MAX_WORDS, informative)


def _spoken(text: str) -> str:
    """Return the text without addresses, keys and hashes: many digits that nobody asks for."""
    words = _URL.sub(" ", text).split(" ")
    return " ".join(word for word in words if len(word) <= MAX_WORD_LENGTH)


def _names_in(text: str, names: frozenset[str]) -> set[str]:
    words = set(split_words(text))
    return {name for name in names if name in words or (is_hebrew(name) and name in text)}


def _plain_figure(figure: str) -> str:
    digits = "".join(
        str(unicodedata.decimal(each)) if each.isdecimal() else each for each in figure
    )
    return digits.replace(",", "")


def informative_words(text: str) -> float:
    """Return how many words of the text carry content: not "thanks", "can" or "really".

    Only English and Hebrew have lists of such words. Words of other languages count half.
    """
    tokens = [token for token in tokenize(text) if token.text not in _SMALL_TALK]
    kinds = [kind_of(token) for token in tokens]
    listed = {WordKind.FUNCTION, WordKind.VAGUE, WordKind.COMMON}
    is_english = bool(set(split_words(text.lower())) & _ENGLISH_GRAMMAR)
    return sum(
        1.0 if kind in listed or token.script == "hebrew" or is_english or token.part else 0.5
        for token, kind in zip(tokens, kinds, strict=True)
        if token.part or kind in _INFORMATIVE
    )


def _needs_question(text: str) -> bool:
    """Return whether the sentence is an answer of a few words: "42", "Dana Levi", "on Sunday"."""
    return len(text.split()) <= 3 and not is_question(text) and informative_words(text) > 0


def _parts(text: str) -> Iterator[str]:
    """Yield the text in pieces of at most MAX_LENGTH characters, with marks at the cuts."""
    room = MAX_LENGTH - 2 * len(CUT_MARK)
    before = ""
    while len(text) > MAX_LENGTH - len(before):
        cut = _cut(text, room)
        yield before + text[:cut].rstrip() + CUT_MARK
        before, text = CUT_MARK, text[cut:].lstrip()
    if text:
        yield before + text


def _cut(text: str, room: int) -> int:
    """Return where to split: after a pause in the second half, a word, or a character."""
    pauses = [pause.start() + 1 for pause in _PAUSE.finditer(text, room // 2, room + 1)]
    if pauses:
        return pauses[-1]
    space = text.rfind(" ", 1, room + 1)
    return space if space > 0 else max(1, cut_between_characters(text, room))
