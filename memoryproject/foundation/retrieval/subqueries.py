"""Sub-queries of a message: each question by itself, its words, and the days that it names."""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path

from memoryproject.foundation.retrieval.query import (
    QueryTerm,
    is_informative,
    query_terms,
    text_without,
)
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.terms import word_forms
from memoryproject.foundation.text.tokenizer import Kind, tokenize

MAX_PARTS = 4

# Of a pasted text only the end is read: the question about it stands there.
MAX_CHARACTERS = 4_000

# The words of questions by their use. Some are patterns of several forms.
_WORDS: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("question_words.json").read_text(encoding="utf-8")
)
_ASKING, _ASKING_FIRST, _JOINING, _BEFORE_ASKING = (
    "|".join(_WORDS[use]) for use in ("asking", "asking_first", "joining", "before_asking")
)
_HEBREW_ASKING, _HEBREW_ASKING_FIRST, _HEBREW_BEFORE_ASKING = (
    "|".join(_WORDS[f"hebrew_{use}"]) for use in ("asking", "asking_first", "before_asking")
)

_ASKS = (
    rf"(?:(?:{_BEFORE_ASKING})\s+){{0,2}}(?:{_ASKING})\b"
    rf"|ו?(?:(?:{_HEBREW_BEFORE_ASKING})\s+){{0,2}}[בלמש]?(?:{_HEBREW_ASKING})\b"
)

_ASKS_FIRST = rf"(?:please\s+)?(?:{_ASKING_FIRST})\b|ו?(?:{_HEBREW_ASKING_FIRST})\b"

# A clause ends at a comma or before a conjunction, if a question follows.
# Outside of a comma's alternatives a run of spaces is tried from its first one only: else a run of
# n spaces takes n² steps.
_CUT = re.compile(
    rf"[,;:–—-]\s+(?=(?:(?:{_JOINING})\s+){{0,2}}(?:{_ASKS}))"
    rf"|(?:[,;:–—-]|(?<!\s))\s+(?=(?:(?:{_JOINING})\s+){{1,2}}(?:{_ASKS}|{_ASKS_FIRST}))"
    rf"|(?:[,;:–—-]|(?<!\s))\s+(?=ו(?:(?:{_HEBREW_BEFORE_ASKING})\s+)?[בלמש]?(?:{_HEBREW_ASKING})\b)"
    rf"|[,;:–—-]\s+(?=ו?(?:{_HEBREW_ASKING_FIRST})\b)",
    re.IGNORECASE,
)

_SENTENCE = re.compile(r"[^.!?…؟\n]+(?:[.!?…؟](?=\S)[^.!?…؟\n]+)*[.!?…؟]*")

_IS_ASKING = re.compile(
    rf"\b(?:{_ASKS})|^\W*(?:(?:{_JOINING})\s+){{0,2}}(?:{_ASKS_FIRST})", re.IGNORECASE
)

# "How are you" asks for nothing that is remembered.
_SMALL_TALK = re.compile(
    r"\bhow\s+(?:are|is|was|were|have|has)\b|\bhow['’]?s\b|\bו?איך\s+(?:היה|היו|הייתה|עבר|עברה|אתה|את|אתם)\b|"
    r"\bו?מה\s+(?:שלום|שלומך|שלומכם|נשמע|העניינים|קורה)\b(?!\s+עם)",
    re.IGNORECASE,
)

# Questions in other languages, which are often written without a question mark. Only the beginning
# of a sentence shows one: "when" also joins clauses.
_OTHER_ASKING = re.compile(
    rf"(?:^|[.!?…\n])\W{{0,8}}(?:(?:{'|'.join(_WORDS['before_other_asking'])})\s+)?"
    rf"(?:{'|'.join(_WORDS['other_asking'])})(?!\w)|¿|[？吗呢]\s*$|什么|几点|哪里|多少|怎么",
    re.IGNORECASE,
)

# Questions for all of something: by a word such as "all", or a plural that is asked for.
_ASKS_FOR_ALL = re.compile(rf"(?<!\w)(?:{'|'.join(_WORDS['asking_for_all'])})(?!\w)", re.IGNORECASE)

# Such a word refers to something that was named before.
_REFERS_BACK = re.compile(rf"\b(?:{'|'.join(_WORDS['refers_back'])})\b", re.IGNORECASE)


def question_parts(text: str) -> list[str]:
    """Return the questions and requests in ``text``, at most ``MAX_PARTS``, the last ones.

    Returns none if the whole text is one question. A question that refers back includes the clause
    before it.
    """
    clauses = _clauses(text[-MAX_CHARACTERS:])
    if len(clauses) < 2:
        return []
    parts = []
    before = ""
    for clause, asks in clauses:
        if asks:
            parts.append(f"{before} {clause}".strip() if _REFERS_BACK.search(clause) else clause)
        before = clause
    return parts[-MAX_PARTS:]


def asks(text: str) -> bool:
    """Return whether ``text`` asks for something."""
    read = text[-MAX_CHARACTERS:]
    return any(asking for _, asking in _clauses(read)) or bool(_OTHER_ASKING.search(read))


def asks_for_all(text: str) -> bool:
    """Return whether ``text`` asks for several things: "which cities has Dana been to?"."""
    return bool(_ASKS_FOR_ALL.search(" ".join(text[-MAX_CHARACTERS:].split())))


def only_asks(text: str) -> bool:
    """Return whether ``text`` asks for something and states nothing beside it."""
    return len(text) <= MAX_CHARACTERS and asks(text) and not any(map(_states, _clauses(text)))


def _states(clause: tuple[str, bool]) -> bool:
    text, asking = clause
    if asking or _OTHER_ASKING.search(text):
        return False
    return any(map(is_informative, query_terms(text)))


_KNOWS_NOTHING = re.compile(
    r"\b(?:do|did)(?:n['’]?t|\s+not)\s+(?:know|have(?:\s+(?:that|this|the|any|enough))?\s+information)\b"
    r"|\bno idea\b"
    r"|\b(?:let me|i['’]?ll|i will)\s+(?:check|look|find out|get back)\b"
    r"|(?:לא|אינני|איני)\s+(?:יודע|יודעת|בטוח|בטוחה)(?!\w)|אין לי (?:מושג|מידע)|(?<!\w)אבדוק(?!\w)",
    re.IGNORECASE,
)
MAX_LENGTH_OF_NOTHING = 200


def knows_nothing(answer: str) -> bool:
    """Return whether an answer only says that nothing is known: "Sorry, I don't know."."""
    return len(answer) <= MAX_LENGTH_OF_NOTHING and bool(_KNOWS_NOTHING.search(answer))


# Texts are compared up to this length; longer ones also by their length.
COMPARED_LENGTH = 2_000

MAX_LEAD_IN_LENGTH = 100
# A quotation such as "Echo: when do you open?". A denial isn't one.
_LEAD_IN = re.compile(
    r"\s*(?!(?:no|not|never|wrong|לא|אין|טעות)\b)[^\W\d]+(?:\s+[^\W\d]+)?\s*:\s+", re.IGNORECASE
)


def unquoted(text: str) -> str:
    """Return the text that a line quotes after one or two words and a colon, or the whole line."""
    found = _LEAD_IN.match(text, 0, MAX_LEAD_IN_LENGTH)
    return text[found.end() :] if found else text


def may_repeat_a_query(text: str) -> bool:
    """Return whether the text, or what it quotes, asks for something; False for a long one."""
    if len(text) > 2 * COMPARED_LENGTH:
        return False
    return any(asks(each) for each in {text, unquoted(text)})


def _clauses(text: str) -> list[tuple[str, bool]]:
    """Return the clauses of ``text`` in order, each with whether it asks for something."""
    clauses = []
    for sentence in _SENTENCE.findall(text):
        pieces = [piece.strip() for piece in _CUT.split(sentence) if piece.strip()]
        alone = len(pieces) == 1 and sentence.rstrip().endswith(("?", "؟"))
        clauses += [(piece, _asks(piece, alone=alone)) for piece in pieces]
    return clauses


def _asks(clause: str, *, alone: bool) -> bool:
    return bool(alone or _IS_ASKING.search(clause)) and not _SMALL_TALK.search(clause)


_MONTHS = {
    name: number for number, names in enumerate(_WORDS["months"], start=1) for name in names.split()
}

# These are also ordinary words, but then not capitalised.
_ALSO_WORDS = {"may", "march", "mar"}

_MONTH = "|".join(sorted(map(re.escape, _MONTHS), key=len, reverse=True))

_DAY = r"(?P<{}>[0-3]?\d)(?:st|nd|rd|th)?"

_YEAR = r"(?:,?\s+(?:of\s+|ב)?(?P<year>(?:19|20)\d\d))?"

_NAMED = re.compile(
    rf"(?<!\w)(?:{_DAY.format('before')}\s+(?:of\s+|ב|ל)?)?[בלמ]?(?P<month>{_MONTH})\b\.?"
    rf"(?:\s+{_DAY.format('after')}(?!\d|\w))?{_YEAR}",
    re.IGNORECASE,
)

_WRITTEN = re.compile(r"(?<!\d)((?:19|20)\d\d)-(\d\d?)-(\d\d?)(?!\d)")

_YEAR_ALONE = re.compile(r"(?<![\d-])((?:19|20)\d\d)(?![\d-])")

# (begin, end) in days before today, the end inclusive.
_RELATIVE = (
    (re.compile(r"\byesterday\b|(?<!\w)אתמול", re.IGNORECASE), (1, 1)),
    (re.compile(r"\b(?:today|this morning)\b|(?<!\w)היום", re.IGNORECASE), (0, 0)),
    (re.compile(r"\blast week\b|בשבוע שעבר", re.IGNORECASE), (14, 5)),
    (re.compile(r"\blast month\b|בחודש שעבר", re.IGNORECASE), (62, 20)),
)

_LAST_YEAR = re.compile(r"\blast year\b|בשנה שעברה", re.IGNORECASE)

_LAST = re.compile(r"\blast\s+$", re.IGNORECASE)
# So many characters before a month may hold the word.
_LAST_LENGTH = 20

# An event is mentioned on its day, or within this many days after it.
MENTIONED_WITHIN = 14

_MENTIONED_LATER = 0.8


@dataclass(frozen=True)
class Period:
    """A period from ``first`` to ``last``, both days included. ``any_year``: of every year."""

    first: date
    last: date
    any_year: bool = False

    def fits(self, day: date) -> float:
        """Return how well a message of ``day`` may be about the period, in [0, 1].

        It is 1 within the period and falls until ``MENTIONED_WITHIN`` days after it.
        """
        if not self.any_year:
            return self._fits_in(day, 0)
        return max(self._fits_in(day, shift) for shift in (0, 1))

    def _fits_in(self, day: date, back: int) -> float:
        first, last = self.first, self.last
        if self.any_year:
            first, last = _in_year(first, day.year - back), _in_year(last, day.year - back)
        if first <= day <= last:
            return 1.0
        late = (day - last).days
        return (
            _MENTIONED_LATER * (1 - late / MENTIONED_WITHIN) if 0 < late < MENTIONED_WITHIN else 0.0
        )


def periods_asked(question: str, *, today: date) -> list[Period]:
    """Return the periods that a question names, those with a month first.

    A year by itself counts only if no month is named.
    """
    question = question[-MAX_CHARACTERS:]
    named = [
        period for match in _NAMED.finditer(question) if (period := _named(match, question, today))
    ]
    named += [
        Period(day, day) for match in _WRITTEN.finditer(question) if (day := _day(*match.groups()))
    ]
    for pattern, (begins, ends) in _RELATIVE:
        if pattern.search(question):
            named.append(Period(today - timedelta(days=begins), today - timedelta(days=ends)))
    if _LAST_YEAR.search(question):
        named.append(_whole_year(today.year - 1))
    if named:
        return list(dict.fromkeys(named))
    return [_whole_year(int(year)) for year in dict.fromkeys(_YEAR_ALONE.findall(question))]


def best_fit(periods: Sequence[Period], day: date) -> float:
    """Return how well a message of ``day`` fits the best of the periods, in [0, 1]."""
    return max((period.fits(day) for period in periods), default=0.0)


def _named(match: re.Match[str], question: str, today: date) -> Period | None:
    written = match["month"]
    if written.lower() in _ALSO_WORDS and not written[0].isupper():
        return None
    month = _MONTHS[written.lower()]
    day = match["before"] or match["after"]
    year = match["year"]
    begin = match.start("month")
    if year is None and _LAST.search(question, max(0, begin - _LAST_LENGTH), begin):
        year = str(today.year if month < today.month else today.year - 1)
    first = date(int(year) if year else 2000, month, 1)
    last = _end_of_month(first)
    if day and 1 <= int(day) <= last.day:
        first = last = first.replace(day=int(day))
    return Period(first, last, any_year=year is None)


def _day(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def _whole_year(year: int) -> Period:
    return Period(date(year, 1, 1), date(year, 12, 31))


def _end_of_month(first: date) -> date:
    return (first + timedelta(days=32)).replace(day=1) - timedelta(days=1)


def _in_year(day: date, year: int) -> date:
    try:
        return day.replace(year=year)
    except ValueError:  # 29 February
        return date(year, 2, 28)


@dataclass(frozen=True)
class QueryPart:
    """A text to search for, and its terms."""

    text: str
    terms: Sequence[QueryTerm]

    def without(self, words: Collection[str]) -> "QueryPart":
        """Return the part without these words of its terms."""
        kept = [term for term in self.terms if term.word not in words]
        return QueryPart(text_without(self.text, words), kept)


def query_parts(message: str) -> list[QueryPart]:
    """Return the message itself, then the questions in it, if it holds more than one.

    A question for the place of the business stands as one that vectors and words can find.
    """
    return [part for text in (message, *question_parts(message)) for part in _parts_of(text)]


def _parts_of(text: str) -> list[QueryPart]:
    own = [QueryPart(text, query_terms(text))]
    if not asks_for_place(text):
        return own
    for_place = QueryPart(PLACE_QUESTION, [word_of_place()])
    return [*own, for_place] if names_thing(text) else [for_place]


# Questions for the place of a business: "where are you?", which holds no word of an address. To
# vectors it is as near to the opening hours. So all of them are searched for as one question, by
# the words that addresses have.

_WORD = re.compile(r"[^\W_]+")
_LONGEST = 12
# In other words, and in other languages, its vector is less near to addresses.
PLACE_QUESTION = "where is the shop, on which street"


@cache
def _lists() -> dict[str, list[str]]:
    lists: dict[str, list[str]] = json.loads(
        Path(__file__).with_name("place.json").read_text(encoding="utf-8")
    )
    return lists


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(fold(" ".join(_lists()[name])).split())


@cache
def _questions() -> list[list[set[str]]]:
    """Return each question as the words that may stand in its places; "-" is none."""
    return [
        [
            {"" if word == "-" else fold(word) for word in place.split("|")}
            for place in question.split()
        ]
        for question in _lists()["questions"]
    ]


def asks_for_place(text: str) -> bool:
    """Return whether the text asks where the business is, and nothing else."""
    words = _words_of(text)
    return len(words) <= _LONGEST and any(
        _fits(kept, places)
        for kept in (words, _without(words, _words("polite")))
        if kept
        for places in _questions()
    )


def names_thing(text: str) -> bool:
    """Return whether a question for the place calls it something: "where is the office?"."""
    return not _words("things").isdisjoint(_words_of(text))


@cache
def word_of_place() -> QueryTerm:
    """Return the word that stands for any of an address, in several languages."""
    forms = [word_forms(token) for token in tokenize(" ".join(_lists()["words"]))]
    words = [word for each in forms for word in (each.word, *each.bare)]
    return QueryTerm("address", Kind.COMMON, (*words, *("~" + word for word in words)))


def _words_of(text: str) -> list[str]:
    return _WORD.findall(fold(text[:200]))


def _without(words: Sequence[str], polite: frozenset[str]) -> Sequence[str]:
    kept = list(words)
    for end in (0, -1):
        while kept and kept[end] in polite:
            kept.pop(end)
    return kept


def _fits(words: Sequence[str], places: Sequence[set[str]]) -> bool:
    if not places:
        return not words
    here = places[0]
    return ("" in here and _fits(words, places[1:])) or (
        bool(words) and words[0] in here and _fits(words[1:], places[1:])
    )
