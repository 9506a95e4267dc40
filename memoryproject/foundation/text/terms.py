"""The terms under which a text is indexed, and the kinds of answer that it holds."""

# ruff: noqa: E501 patterns
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from memoryproject.foundation.text import hebrew_words
from memoryproject.foundation.text.concepts import concepts
from memoryproject.foundation.text.english import stem
from memoryproject.foundation.text.hebrew import bare_forms, root
from memoryproject.foundation.text.sound import sound_key
from memoryproject.foundation.text.tokenizer import (
    MAX_TERM,
    MAX_TEXT,
    Kind,
    Token,
    kind_of,
    tokenize,
)

_DAYS = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july|august|"
    r"september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|tomorrow|"
    r"weekends?"
)

_HEBREW_DAYS = (
    r"[בהלמ]?(?:ראשון|שלישי|רביעי|חמישי|שישי|שבת|ינואר|פברואר|מרץ|אפריל|מאי|יוני|יולי|אוגוסט|"
    r"ספטמבר|אוקטובר|נובמבר|דצמבר|מחר|סופש)"
)

_NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|couple|both|twice"

_HEBREW_NUMBERS = (
    r"אחד|אחת|שני|שתי|שניים|שתיים|שלוש|שלושה|ארבע|ארבעה|חמש|חמישה|שש|שישה|שבע|שבעה|שמונה|תשע|תשעה|"
    r"עשר|עשרה|פעמיים"
)

_HELD = {
    "amount": r"[$€£₪]\s?\d|\d\s?(?:[$€£₪]|usd\b|eur\b|nis\b|dollars?\b|euros?\b|shekels?\b|"
    r"ש[\"״”']?ח|שקל|דולר|יורו)|\d\s?%|\bfree\b|(?<!\w)חינם",
    "clock": r"\d{1,2}[:.]\d\d(?!\d)|\b\d{1,2}\s?(?:am|pm)\b|\bnoon\b|\bmidnight\b|\bo'?clock\b"
    r"|(?:בשעה|בצהריים|בחצות)",
    "day": rf"\b(?:{_DAYS})\b|(?-i:\bMay\b)|(?<!\w){_HEBREW_DAYS}(?!\w)|\b\d{{1,2}}(?:st|nd|rd|th)\b"
    r"|(?<!\d)\d{1,2}[./]\d{1,2}(?:[./]\d{2,4})?(?!\d)|\b(?:19|20)\d\d\b|[בלמה]-?\d{1,2}\s+לחודש",
    "phone": r"(?<!\d)\+?\d(?:[ -]?\d){8,}(?!\d)",
    "email": r"[\w.+-]@[\w-]+\.\w",
    "number": rf"\d|\b(?:{_NUMBERS})\b|(?<!\w)[וב]?(?:{_HEBREW_NUMBERS})(?!\w)",
    "length": rf"(?:\d|\b(?:an?|half|{_NUMBERS})\b)[ -]?(?:minutes?|mins?|hours?|hrs?|days?|weeks?|months?|"
    r"years?)\b|(?<!\w)ב?(?:דקות|שעה|שעתיים|שעות|יומיים|ימים|שבועיים|שבועות|חודשיים|חודשים|שנתיים|שנים|"
    r"שבוע|חודש|שנה)(?!\w)",
}

_SOUGHT = {
    "amount": r"\bhow much\b|\b(?:price|cost|costs|fee|rate|quote|quoted|total|owe|owes|debt|charge|"
    r"charges|pay|budget|salary|rent|deposit)\b|כמה\s+(?:זה\s+|הוא\s+|היא\s+)?(?:עולה|עולות|עולים|עלה|"
    r"עלתה|לשלם|משלמים|שילמנו|חייב|כסף|לוקח)|(?<!\w)[הבלמ]?(?:מחיר|מחירים|תעריף|עלות|שכר|שכירות|חוב)(?!\w)",
    "clock": r"\b(?:when|what time|until when|how late|how early|hours)\b|"
    r"(?<!\w)(?:מתי|שעות|נסגר|נפתח)(?!\w)|באיז[הו] שע",
    "day": r"\b(?:when|what date|what day|which day|which days|what days|deadline|birthday)\b|"
    r"(?<!\w)(?:מתי|באיזה יום|באיזה תאריך|באיזה ימים|באילו ימים|תאריך)(?!\w)",
    "phone": r"\b(?:phone|telephone|mobile|call|reach|contact)\b|\bnumber (?:of|for)\b|"
    r"(?<!\w)[ה]?(?:טלפון|נייד|להתקשר|המספר של|מספר של)(?!\w)",
    "email": r"\be-?mail(?: address)?\b|(?<!\w)ה?(?:מייל|אימייל|דוא[\"״]ל)(?!\w)",
    "number": r"\bhow many\b|(?<!\w)כמה(?!\s+(?:זמן|זה\s|עולה|עולות|עולים|עלה|עלתה))(?!\w)",
    "length": r"\bhow long\b|(?<!\w)(?:כמה זמן|תוך כמה|למשך)(?!\w)",
}

_HELD_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _HELD.items()}

_SOUGHT_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _SOUGHT.items()}


def answer_kinds_of_text(text: str) -> list[str]:
    """Return the kinds of answers that ``text`` holds."""
    read = text[:MAX_TEXT]
    return [kind for kind, pattern in _HELD_PATTERNS.items() if pattern.search(read)]


def answer_kinds_of_question(question: str) -> list[str]:
    """Return the kinds of answers that ``question`` asks for. Any of them answers it."""
    read = question[:MAX_TEXT]
    return [kind for kind, pattern in _SOUGHT_PATTERNS.items() if pattern.search(read)]


MAX_TERMS = 60_000

# A phone number is written with or without its country code, and with or without a zero before it.
# Numbers with as many digits are one if they end alike.
_PHONE_DIGITS = 9
_PHONE_END = 8


@dataclass(frozen=True)
class IndexedText:
    """The ``terms`` of a text, repeated as often as they occur, and its ``length`` in words."""

    terms: list[str]
    length: int


@dataclass(frozen=True)
class WordForms:
    """One word in the forms that are compared.

    The forms are ``word``, its ``bare`` forms, ``sounds``, ``concept`` and ``root``. ``parts`` find
    a text that holds the word; the word doesn't find a text that holds only a part.
    """

    word: str
    bare: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    sounds: tuple[str, ...] = ()
    concept: str | None = None
    root: str | None = None


def index_text(text: str) -> IndexedText:
    """Return the terms and the length of ``text``.

    Reads ``tokens.MAX_TEXT`` characters. At most ``MAX_TERMS`` terms, each of 1 to
    ``tokens.MAX_TERM`` + 2 characters without NUL.
    """
    terms: list[str] = []
    length = 0
    before: Token | None = None
    for token in tokenize(text):
        length += not token.whole
        terms.extend(_token_terms(token))
        if before is not None and before.capitalised and token.capitalised:
            # A search for "TestCorp" also finds "Test Corp".
            terms.append("~" + stem(before.text + token.text)[:MAX_TERM])
        before = token
        if len(terms) >= MAX_TERMS:
            break
    answers = ["?" + kind for kind in answer_kinds_of_text(text)]
    if "?amount" in answers:
        answers.append("=money")
    if "?phone" in answers:
        answers += _spaced_numbers(text)
    return IndexedText([*answers, *terms][:MAX_TERMS], length)


def _spaced_numbers(text: str) -> Iterator[str]:
    """Yield a term for each phone number that is divided by blanks: each part is a word."""
    for found in _HELD_PATTERNS["phone"].finditer(text[:MAX_TEXT]):
        if " " in found[0]:
            yield "~" + "".join(filter(str.isdigit, found[0]))[-_PHONE_END:]


def index_terms(text: str) -> list[str]:
    """Return the terms of ``text``, repeated as often as they occur."""
    return index_text(text).terms


def word_forms(token: Token) -> WordForms:
    """Return the forms under which ``token`` is indexed and searched."""
    if token.script == "hebrew":
        return _hebrew_forms(token.text)
    if token.script == "latin" and not token.whole:
        return _latin_forms(token.text, token.camel_parts, kind_of(token))
    if token.script == "number" and len(token.text) >= _PHONE_DIGITS:
        return WordForms(token.text, bare=(token.text[-_PHONE_END:],))
    return WordForms(token.text)


# As in the tokenizer.
@lru_cache(maxsize=8_192)
def _token_terms(token: Token) -> tuple[str, ...]:
    return tuple(_forms_as_terms(token))


def _forms_as_terms(token: Token) -> Iterator[str]:
    forms = word_forms(token)
    yield forms.word
    yield from ("~" + form for form in forms.bare + forms.parts)
    yield from ("@" + sound for sound in forms.sounds)
    if forms.concept:
        yield "=" + forms.concept
    if forms.root:
        yield "*" + forms.root


@lru_cache(maxsize=50_000)
def _hebrew_forms(word: str) -> WordForms:
    # "האחריות" is no form of the word "אחרי": the remaining word must be informative.
    bare = tuple(form for form in bare_forms(word) if form not in hebrew_words.FUNCTION)
    concept = next(filter(None, map(concepts().get, (word, *bare))), None)
    sounds: dict[str, None] = {}
    if concept is None:
        sounds = {key: None for form in (word, *bare) if (key := sound_key(form))}
    informative = kind_of(Token(word, "hebrew")) not in (Kind.FUNCTION, Kind.VAGUE)
    return WordForms(
        word,
        bare=bare,
        sounds=tuple(sounds),
        concept=concept,
        root=root(word) if informative else None,
    )


@lru_cache(maxsize=50_000)
def _latin_forms(word: str, camel_parts: tuple[str, ...], kind: Kind) -> WordForms:
    parts = tuple(dict.fromkeys(stem(part) for part in camel_parts))
    # Only possible names are compared by sound.
    key = sound_key(word) if kind in (Kind.PLAIN, Kind.NAME) else None
    sounds = (key,) if key else ()
    return WordForms(stem(word), parts=parts, sounds=sounds, concept=concepts().get(stem(word)))
