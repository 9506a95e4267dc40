"""Find the promises of a business in a message, and what keeps them. Pure: no database here.

``words.json`` has for each language expressions over a text in one spelling: ``own``: what the
writer is going to do; ``coming``: what others, or things, are going to do for the person;
``planned``: the same in the present, which counts with a time only, and ``dated``, with a day only;
``offers``: what makes a sentence an offer, a guess or a delay of seconds; ``done``: what the
message itself does; ``sent``: what says, at the beginning of a clause, that something was done, and
``was_sent``, anywhere. ``when``: words that stand for a time. ``closings``, of all languages: what
only tells when the business is open or somebody is away, or begins a remark.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils import dateformat, translation

from cards_app.rules.words import is_question, split_sentences
from memories_app.facts.validity import days_named
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.terms import word_forms
from memoryproject.foundation.text.tokenizer import Kind, kind_of, tokenize

_LISTS = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
_LANGUAGES: dict[str, dict[str, list[str] | str]] = _LISTS["languages"]
MAX_SENTENCE = 1_000
# So many words before a verb may deny it, and so many after it say that it is being done.
_REACH = 3
_INVISIBLE = re.compile(
    "[\u0610-\u061a\u064b-\u065f\u0670\u0640\u200b-\u200f\u202a-\u202e\u2060-\u2069]"
)
_ONE_SPELLING = str.maketrans(
    {"’": "'", "‘": "'", "أ": "ا", "إ": "ا", "آ": "ا", "ى": "ي", "ة": "ه"}
)
_QUOTED = re.compile(r"(?<!\w)[\"“„«][^\"“”„«»\n]{1,300}[\"”“»](?!\w)|`[^`\n]{1,300}`")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_STOPS = re.compile(r"(?!(?<=\d)\.\d)[^\w\s'\"׳״/:-]+|[:-](?=\s|$)|(?<=\s)-")


def _groups(name: str) -> str:
    """Return a group for each number of a table, by the name "n" and the number."""
    return "|".join(f"(?P<n{number}>{'|'.join(words)})" for number, words in _LISTS[name].items())


@cache
def patterns(name: str) -> dict[str, re.Pattern[str]]:
    """Return the expressions of that name, by language; made when needed, as they are slow."""
    return {
        language: re.compile(rf"(?<!\S)(?:{'|'.join(lists[name])})(?!\w)")
        for language, lists in _LANGUAGES.items()
    }


_NEGATIONS = {
    language: frozenset(str(words["negations"]).split()) for language, words in _LANGUAGES.items()
}
_WHEN = frozenset(" ".join(str(words["when"]) for words in _LANGUAGES.values()).split())
_NUMBERS = {
    word: number
    for number, words in enumerate(_LISTS["numbers"], start=1)
    for word in words.split()
}
_WITHIN = re.compile(
    rf"(?<!\S)(?:{_LISTS['within']}) ?-?(?:the next |los próximos |os próximos |ближайшие )?"
    rf"(?:(\d{{1,3}}|{'|'.join(_NUMBERS)}) )?(?:({'|'.join(_LISTS['business'])}) )?"
    rf"(?:{_groups('units')})(?!\w)"
)
_BUSINESS_UNITS = tuple(_LISTS["business_units"])
_NOW = frozenset(_LISTS["now"].split())
_CLOCK = re.compile(rf"(?<!\S)(?:{_LISTS['clock']})(?!\w)")
_RELATIVE = re.compile(rf"(?<!\S)(?:{_groups('relative')})(?!\w)")
_CLOSINGS = re.compile("|".join(_LISTS["closings"]))
_OF_MONTH = re.compile(rf"(?<!\S)(?:{_LISTS['of_month']})(?!\w)")


@dataclass(frozen=True)
class Promise:
    """A promise: its sentence as it was written, and the day until which it is to be kept."""

    text: str
    due: date | None

    @property
    def only_asks(self) -> bool:
        """Whether it is no more than to ask, and to answer then: it names no matter."""
        words = forms_of(self.text)
        is_other = sends(self.text) or _CALLING.search(_plain(self.text))
        return self.due is None and not is_other and words <= _doing() | _asking()


def promises_in(text: str, said_at: datetime) -> list[Promise]:
    """Return the promises that the business makes in a message, in their order."""
    found = []
    for sentence in _sentences(text):
        plain = _plain(sentence)
        place = _promised_at(plain, said_at)
        if place is not None:
            found.append(Promise(sentence, due_of(plain, said_at, after=place)))
    return found


def may_matter(text: str) -> bool:
    """Return whether a message may promise something or keep a promise; a file alone may."""
    now = datetime.now(timezone.utc)
    return not text.strip() or bool(promises_in(text, now)) or kept_in(text) is not None


def _sentences(text: str) -> Iterator[str]:
    for sentence in split_sentences(_CODE.sub("\n", text)):
        if not (is_question(sentence.text) or sentence.text.startswith((">", "¿", "//", "#"))):
            yield sentence.text[:MAX_SENTENCE]


def _plain(sentence: str) -> str:
    """Return a sentence in one spelling: without quotations, its marks as lone commas."""
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", sentence)).casefold()
    text = _STOPS.sub(" , ", _QUOTED.sub(" ", text.translate(_ONE_SPELLING)))
    return " ".join(text.split())


def _promised_at(plain: str, said_at: datetime) -> int | None:
    """Return where the sentence, in one spelling, begins to promise; None if it doesn't."""
    if any(each.search(plain) for each in patterns("offers").values()):
        return None
    has_day = due_of(plain, said_at) is not None
    if not has_day and any(each.search(plain) for each in patterns("done").values()):
        return None
    has_time = has_day or _CLOCK.search(plain) or not _WHEN.isdisjoint(plain.split())
    kinds = ["own", "coming", *(["planned"] if has_time else []), *(["dated"] if has_day else [])]
    for kind in kinds:
        for language in _LANGUAGES:
            for match in patterns(kind)[language].finditer(plain):
                if _CLOSINGS.match(plain, match.start()):
                    continue
                after = plain[match.end() :].split()[:_REACH]
                is_now = kind in ("planned", "dated") and not _NOW.isdisjoint(after)
                if not (is_now or _is_denied(plain[: match.start()], language)):
                    return match.start()
    return None


def _is_denied(before: str, language: str) -> bool:
    clause = before.rpartition(",")[2]
    return not _NEGATIONS[language].isdisjoint(clause.split()[-_REACH:])


# The day until which a promise is to be kept.


def due_of(plain: str, said_at: datetime, *, after: int | None = None) -> date | None:
    """Return the last day that a sentence in one spelling names for what it promises, or None.

    ``after``: where the promise begins. A day in the same clause counts before others.
    """
    if after is not None:
        start = plain.rfind(",", 0, after) + 1
        end = plain.find(",", after)
        clause = due_of(plain[start : None if end < 0 else end].strip(), said_at)
        if clause is not None:
            return clause
    today = said_at.astimezone(ZoneInfo(settings.BUSINESS_TIME_ZONE))
    named = " ".join(_LISTS["respelled"].get(word, word) for word in plain.split())
    days = days_named(named, said_at)
    within = _WITHIN.search(plain)
    last = [each.day for each in days if each.is_last]
    number = _OF_MONTH.search(plain)
    if (
        number is not None
        and not last
        and (day := _of_month(int(number[number.lastindex or 1]), today))
    ):
        return day
    if within is not None and not last:
        return _within(within, today)
    if days:
        return (last or [each.day for each in sorted(days, key=lambda each: not each.is_exact)])[0]
    near = _RELATIVE.search(plain)
    return today.date() + timedelta(days=_number(near)) if near else None


def _number(match: re.Match[str]) -> int:
    """Return the number of the group that matched last: see ``_groups``."""
    return int(str(match.lastgroup)[1:])


def _of_month(number: int, today: datetime) -> date | None:
    """Return the next day with this number in its month; None if no month has it soon."""
    days = (today.date() + timedelta(days=count) for count in range(62))
    return next((day for day in days if day.day == number), None)


def _within(match: re.Match[str], today: datetime) -> date:
    number, business = match[1], match[2]
    count = int(number) if number and number.isdigit() else _NUMBERS.get(number or "", 1)
    if not (business or match[0].endswith(_BUSINESS_UNITS)):
        return (today + timedelta(hours=_number(match) * count)).date()
    # Friday and Saturday where people write Hebrew or Arabic.
    weekend = (4, 5) if re.search("[א-תء-ي]", match[0]) else (5, 6)
    day = today.date()
    while count:
        day += timedelta(days=1)
        count -= day.weekday() not in weekend
    return day


def promise_text(promise: Promise, *, day: datetime, name: str, language: str) -> str:
    """Return a promise as it is remembered: when and to whom it was made, and its sentence."""
    known = language if language in _LISTS["said"] else "en"
    with translation.override(known):
        said_on = dateformat.format(day, _LISTS["dates"].get(known, "j E Y"))
    if known in _LISTS["dates"]:
        # No month is a name there.
        said_on = said_on.lower()
    return str(_LISTS["said"][known][bool(name)]).format(day=said_on, name=name) + promise.text


# Say which promise a later message keeps, or says again.


def forms_of(text: str) -> frozenset[str]:
    """Return the compared forms of the informative words of a text, without numbers and days."""
    informative = (Kind.COMMON, Kind.PLAIN, Kind.NAME)
    return frozenset(
        form
        for token in tokenize(text)
        if token.script != "number" and kind_of(token) in informative
        if fold(token.text) not in _DAYS
        for form in (word_forms(token).word, *word_forms(token).bare)
    )


def is_same(one: str, other: str) -> bool:
    """Return whether two promises are about the same: they share most words of the shorter one.

    Of two that send something it doesn't matter in which words: "send" or "will be sent".
    """
    forms, others = forms_of(one), forms_of(other)
    pairs = [(forms, others)]
    if sends(one) and sends(other):
        pairs.append((forms - _doing(), others - _doing()))
    return any(
        bool(left and right) and len(left & right) * 3 >= min(len(left), len(right)) * 2
        for left, right in pairs
    )


def sends(text: str) -> bool:
    """Return whether the promise is to send something."""
    return bool(_SENDING.search(_plain(text)))


_DAYS = frozenset(fold(word) for words in _LISTS["days"] for word in words.split())
_SENDING = re.compile(_LISTS["sending"])
_CALLING = re.compile(_LISTS["calling"])


@cache
def _doing() -> frozenset[str]:
    """Return the words that say that something is done, but not what."""
    return forms_of(" ".join(_LISTS["doing"]))


@cache
def _asking() -> frozenset[str]:
    """Return the words of asking somebody, and of answering then."""
    return forms_of(" ".join(_LISTS["asking"]))


@dataclass(frozen=True)
class Kept:
    """What a message says was done. ``is_bare``: no more than that, as in "Sent!"."""

    forms: frozenset[str]
    is_bare: bool
    is_call: bool

    def names(self, promised: str) -> bool:
        """Return whether it names what was promised, by more than a word such as "sent"."""
        is_same_kind = self.is_call == bool(_CALLING.search(_plain(promised)))
        return is_same_kind and bool((self.forms & forms_of(promised)) - _doing())


def kept_in(text: str) -> Kept | None:
    """Return what the message plainly says was done; None if it says nothing of the kind."""
    for sentence in _sentences(text):
        plain = _plain(sentence)
        for language in _LANGUAGES:
            # "The bank sent the deposit" says nothing of us.
            clauses = [clause.strip() for clause in plain.split(",")]
            begins = any(patterns("sent")[language].match(clause) for clause in clauses)
            is_said = begins or patterns("was_sent")[language].search(plain)
            if is_said and _NEGATIONS[language].isdisjoint(plain.split()):
                forms = forms_of(text)
                is_call = bool(_CALLING.search(plain))
                return Kept(forms, is_bare=forms <= _doing(), is_call=is_call)
    return None
