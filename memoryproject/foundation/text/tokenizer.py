"""Cut text into words, numbers and identifiers, each with its kind; the stems of words."""

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from memoryproject.foundation.text.characters import fold, readable
from memoryproject.foundation.text.word_lists import ENGLISH, HEBREW, OTHERS


class Kind(Enum):
    """Kinds of words, from the least informative to the most."""

    FUNCTION = "function"
    VAGUE = "vague"
    COMMON = "common"
    PLAIN = "plain"
    NAME = "name"


def _bare(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word.replace("'", "") for word in words)


def _stems(words: frozenset[str]) -> frozenset[str]:
    return _bare(words) | frozenset(stem(word) for word in _bare(words))


@lru_cache(maxsize=1)
def _english() -> tuple[tuple[Kind, frozenset[str]], ...]:
    """Return the English words of each kind. Stemming them takes time: not at import."""
    return (
        (Kind.FUNCTION, _bare(ENGLISH.function)),
        (Kind.VAGUE, _stems(ENGLISH.vague)),
        (Kind.COMMON, _stems(ENGLISH.common)),
    )


_HEBREW = (
    (Kind.FUNCTION, HEBREW.function),
    (Kind.VAGUE, HEBREW.vague),
    (Kind.COMMON, HEBREW.common),
)

# The only prefixes that are written together with a grammar word.
_JOINED = ("ו", "ש", "ה")


def kind_of(token: "Token") -> Kind:
    """Return the kind of ``token`` by itself; PLAIN if it is in no list."""
    if token.part:
        return Kind.VAGUE
    if token.script == "hebrew":
        return _hebrew_kind(token.text)
    if token.identifier:
        return Kind.NAME
    if token.script == "number":
        return Kind.COMMON
    for kind, words in _english():
        if token.text in words or (kind is not Kind.FUNCTION and stem(token.text) in words):
            return kind
    # In mid-sentence "Ella" and "MIT" are names.
    if token.text in OTHERS and (token.starts_sentence or not token.capitalised):
        return Kind.FUNCTION
    return Kind.NAME if token.camel_parts else Kind.PLAIN


def _hebrew_kind(word: str) -> Kind:
    for kind, words in _HEBREW:
        if word in words:
            return kind
    if word.startswith(_JOINED) and word[1:] in HEBREW.function:
        return Kind.FUNCTION
    rests = without_prefixes(word)[1:]
    for kind, words in _HEBREW[1:]:
        if any(rest in words for rest in rests):
            return kind
    return Kind.PLAIN


MAX_TEXT = 100_000

MAX_TERM = 64

# Python doesn't count an Indic vowel sign as a word character, but readers do.
_LETTER = r"(?:[^\W_]|[\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e])"

_CHUNK = re.compile(rf"""{_LETTER}+(?:[-–'"’‘”״׳.,:/@_&]{_LETTER}+)*""")

UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"

_SCRIPT_RUN = re.compile(rf"[\u05d0-\u05ea'\"’‘”״׳]+|[{UNSPACED}]+|[^\u05d0-\u05ea{UNSPACED}]+")

_HEBREW_LETTER = re.compile("[\u05d0-\u05ea]")

_LATIN = re.compile("[A-Za-z]")

_IS_UNSPACED = re.compile(f"[{UNSPACED}]")

_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")

_DECIMAL = re.compile(r"\d+\.\d{1,2}")

_QUOTES = re.compile("['\"’‘”״׳]")

_JOINTS = re.compile(r"[-–.,:/@_&]+")

_POSSESSIVE = re.compile("['’‘][sS]$")

_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")

_SENTENCE_END = frozenset('.!?…؟。！？¿¡\n:;"“”([')

_WORD_CHARACTER = re.compile(r"\w")


@dataclass(frozen=True)
class Token:
    """One word.

    ``text`` is folded for comparison, ``script`` is one of latin, hebrew, unspaced, number, other;
    ``whole`` marks an identifier joined from the ``part``s that follow it.
    """

    text: str
    script: str
    capitalised: bool = False
    starts_sentence: bool = False
    whole: bool = False
    part: bool = False
    camel_parts: tuple[str, ...] = ()

    @property
    def identifier(self) -> bool:
        """Return whether it contains digits but isn't a plain short number."""
        if self.text.isalpha():
            return False
        digits = sum(character.isdigit() for character in self.text)
        return bool(digits) and (digits < len(self.text) or digits >= 3)


def tokenize(text: str) -> Iterator[Token]:
    """Yield the words of the first ``MAX_TEXT`` characters of ``text``, in order."""
    clean = readable(text[:MAX_TEXT])[:MAX_TEXT]
    for match in _CHUNK.finditer(clean):
        before = clean[max(0, match.start() - 8) : match.start()]
        # Mostly a single space after a letter.
        inside = before[-1:] == " " and before[-2:-1].isalnum()
        starts = not inside and (not before.strip() or _ends_sentence(before))
        chunk = match.group()
        yield from (_chunk_tokens if len(chunk) <= MAX_TERM else _cut_chunk)(chunk, starts)


def _ends_sentence(before: str) -> bool:
    """Return whether a sentence ends in what stands between the last word and this one."""
    return not _SENTENCE_END.isdisjoint(_WORD_CHARACTER.split(before)[-1])


# Texts consist mostly of the same words. As many take some 5 MB in a process.
@lru_cache(maxsize=8_192)
def _chunk_tokens(chunk: str, starts: bool) -> tuple[Token, ...]:
    return tuple(_cut_chunk(chunk, starts))


def _cut_chunk(chunk: str, starts: bool) -> Iterator[Token]:
    if _THOUSANDS.fullmatch(chunk) or _DECIMAL.fullmatch(chunk):
        yield Token(_plain_number(chunk), "number")
        return
    whole = _identifier(chunk)
    if whole is not None:
        yield whole
    for piece in _JOINTS.split(chunk):
        for run in _SCRIPT_RUN.findall(piece):
            for token in _run_tokens(run, starts):
                yield token if whole is None else replace(token, part=True)
        starts = False


def _plain_number(digits: str) -> str:
    """Return one spelling of an amount: 5,000.00 is 5000."""
    number = digits.replace(",", "")
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return number[:MAX_TERM]


def _identifier(chunk: str) -> Token | None:
    """Return an invoice number, phone, date, or mail or web address as one token.

    It can be found as a whole, however its parts were joined.
    """
    if len(chunk) > MAX_TERM or not _JOINTS.search(chunk) or _HEBREW_LETTER.search(chunk):
        return None
    digits = sum(character.isdigit() for character in chunk)
    letters = bool(_LATIN.search(chunk))
    if "@" in chunk or (digits and letters) or digits >= 6 or (letters and "." in chunk):
        bare = _POSSESSIVE.sub("", chunk)
        joined = fold(_QUOTES.sub("", _JOINTS.sub("", bare)))[:MAX_TERM]
        return Token(joined, "latin" if letters else "number", whole=True)
    return None


def _run_tokens(run: str, starts: bool) -> Iterator[Token]:
    if _HEBREW_LETTER.search(run):
        word = fold(_QUOTES.sub("", run))[:MAX_TERM]
        # A single letter is a prefix that a hyphen or a change of script separated.
        if len(word) > 1:
            yield Token(word, "hebrew", starts_sentence=starts)
        return
    if _IS_UNSPACED.search(run):
        yield from _bigrams(fold(run))
        return
    bare = _QUOTES.sub("", _POSSESSIVE.sub("", run))
    word = fold(bare)[:MAX_TERM]
    if not word:
        return
    if word.isdigit():
        yield Token(word, "number")
        return
    yield Token(
        word,
        "latin" if _LATIN.search(bare) else "other",
        capitalised=bare[0].isupper() or bare != bare.lower(),
        starts_sentence=starts and not _mixed_case(bare),
        camel_parts=_camel_parts(bare),
    )


def _bigrams(run: str) -> Iterator[Token]:
    """Yield pairs of characters, by which scripts without spaces are indexed."""
    for index in range(max(1, len(run) - 1)):
        yield Token(run[index : index + 2], "unspaced")


def _mixed_case(word: str) -> bool:
    return word[1:] != word[1:].lower() and word != word.upper()


def _camel_parts(word: str) -> tuple[str, ...]:
    if len(word) > MAX_TERM or not _mixed_case(word):
        return ()
    parts = [fold(part) for part in _CAMEL.findall(word) if len(part) > 2]
    return tuple(parts) if len(parts) > 1 else ()


# Stems of words by Snowball, in the languages of their script: a word doesn't say its language.


# Of each script the languages in which a word is stemmed. The first stem of a Latin word is
# English.
LANGUAGES = {
    "latin": ("spanish", "portuguese", "french", "german", "italian"),
    "other": ("russian", "arabic"),
}
# A shorter word has no ending that could be cut off.
MIN_LENGTH = 4

# A stemmer keeps the current word in its state, so threads can't share one.
_stemmers = threading.local()

# Words that Snowball would merge although people distinguish them.
_EXCEPTIONS = {"accountant": "accountant", "accountants": "accountant"}


def stem(word: str) -> str:
    """Return the English stem of a folded word: "invoices" and "invoice" are one."""
    return _EXCEPTIONS.get(word) or _stem("english", word)


def other_stems(word: str, script: str, known: str) -> tuple[str, ...]:
    """Return the stems in the other languages of the script, without ``known``."""
    if len(word) < MIN_LENGTH:
        return ()
    found = (_stem(language, word) for language in LANGUAGES.get(script, ()))
    return tuple(dict.fromkeys(each for each in found if each and each != known))


@lru_cache(maxsize=100_000)
def _stem(language: str, word: str) -> str:
    stemmer = getattr(_stemmers, language, None)
    if stemmer is None:
        import snowballstemmer  # noqa: PLC0415 slow to import

        stemmer = snowballstemmer.stemmer(language)
        setattr(_stemmers, language, stemmer)
    return str(stemmer.stemWord(word))


# Hebrew words without attached prefix letters, plural endings and possessive endings. Hebrew can't
# be segmented with certainty without a dictionary ("של" may be a word or two prefixes). So every
# reading that leaves a word of three letters is returned, and a match of any reading counts.

MIN_STEM = 3
MAX_WORD = 24

_PREFIXES = re.compile(r"ו?(?:לכש|כש|מש|ש)?[בלמכ]?ה?")
# Written with folded final letters. Longer endings come first; the empty ending is the word itself.
_ENDINGS = (
    "יהמ", "יהנ", "יכמ", "יות", "ינו", "תיכ", "תיו", "תמ", "תנ",
    "ימ", "ות", "ית", "נו", "כמ", "יו", "יה", "תו", "תה", "תי", "תכ",
    "ת", "ה", "י", "ו", "כ", "מ", "נ",
)  # fmt: skip
# A plural in "ות" belongs to a singular in "ה", and a construct state in "ת" to one in "ה".
_FEMININE_ENDINGS = ("ות", "ת", "תו", "תה", "תי", "תכ")


@lru_cache(maxsize=50_000)
def bare_forms(word: str) -> tuple[str, ...]:
    """Return the words of which a folded Hebrew ``word`` may be a form.

    The word itself and repeats are left out.
    """
    if len(word) > MAX_WORD:
        return ()
    forms: dict[str, None] = {}
    for rest in without_prefixes(word):
        forms[rest] = None
        for ending in _ENDINGS:
            if rest.endswith(ending) and len(rest) - len(ending) >= MIN_STEM:
                forms[rest[: -len(ending)]] = None
        for ending in _FEMININE_ENDINGS:
            if rest.endswith(ending) and len(rest) - len(ending) >= MIN_STEM - 1:
                forms[rest[: -len(ending)] + "ה"] = None
    forms.pop(word, None)
    return tuple(forms)


def without_prefixes(word: str) -> list[str]:
    """Return the word, and the word without each run of prefix letters that it may start with."""
    rests = [word]
    for length in range(1, min(5, len(word) - MIN_STEM + 1)):
        if _PREFIXES.fullmatch(word[:length]):
            rests.append(word[length:])
    return rests
