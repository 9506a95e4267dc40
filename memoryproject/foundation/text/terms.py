"""The terms under which a text is indexed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from memoryproject.foundation.text import tokenizer
from memoryproject.foundation.text.word_lists import HEBREW

MAX_TERMS = 60_000

# A phone number is written with or without its country code, and with or without a zero before it.
# Numbers with as many digits are one if they end alike.
_PHONE_DIGITS = 9
_PHONE_END = 8
_PHONE = re.compile(r"(?<!\d)\+?\d(?:[ -]?\d){8,}(?!\d)")


@dataclass(frozen=True)
class IndexedText:
    """The ``terms`` of a text, repeated as often as they occur, and its ``length`` in words."""

    terms: list[str]
    length: int


@dataclass(frozen=True)
class WordForms:
    """One word in the forms that are compared.

    The forms are ``word``, its ``bare`` forms (its stems, and in Hebrew the word without prefixes
    and endings) and its ``sounds``, by which a name is found in another script. ``parts`` find a
    text that holds the word; the word doesn't find a text that holds only a part.
    """

    word: str
    bare: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    sounds: tuple[str, ...] = ()


def index_text(text: str) -> IndexedText:
    """Return the terms and the length of ``text``.

    Reads ``tokens.MAX_TEXT`` characters. At most ``MAX_TERMS`` terms, each of 1 to
    ``tokens.MAX_TERM`` + 2 characters without NUL.
    """
    terms: list[str] = []
    length = 0
    before: tokenizer.Token | None = None
    for token in tokenizer.tokenize(text):
        length += not token.whole
        terms.extend(_token_terms(token))
        if before is not None and before.capitalised and token.capitalised:
            # A search for "TestCorp" also finds "Test Corp".
            terms.append("~" + tokenizer.stem(before.text + token.text)[: tokenizer.MAX_TERM])
        before = token
        if len(terms) >= MAX_TERMS:
            break
    return IndexedText([*_spaced_numbers(text), *terms][:MAX_TERMS], length)


def _spaced_numbers(text: str) -> Iterator[str]:
    """Yield a term for each phone number that is divided by blanks: each part is a word."""
    for found in _PHONE.finditer(text[: tokenizer.MAX_TEXT]):
        if " " in found[0]:
            yield "~" + "".join(filter(str.isdigit, found[0]))[-_PHONE_END:]


def index_terms(text: str) -> list[str]:
    """Return the terms of ``text``, repeated as often as they occur."""
    return index_text(text).terms


def word_forms(token: tokenizer.Token) -> WordForms:
    """Return the forms under which ``token`` is indexed and searched."""
    if token.script == "hebrew":
        return _hebrew_forms(token.text)
    if token.script == "number" and len(token.text) >= _PHONE_DIGITS:
        return WordForms(token.text, bare=(token.text[-_PHONE_END:],))
    if token.whole or token.script not in ("latin", "other"):
        return WordForms(token.text)
    # Only possible names are compared by sound.
    named = token.script == "latin" and tokenizer.kind_of(token) in (
        tokenizer.Kind.PLAIN,
        tokenizer.Kind.NAME,
    )
    return _stemmed_forms(token.text, token.script, token.camel_parts, named)


# As in the tokenizer.
@lru_cache(maxsize=8_192)
def _token_terms(token: tokenizer.Token) -> tuple[str, ...]:
    return tuple(_forms_as_terms(token))


def _forms_as_terms(token: tokenizer.Token) -> Iterator[str]:
    forms = word_forms(token)
    yield forms.word
    yield from ("~" + form for form in forms.bare + forms.parts)
    yield from ("@" + sound for sound in forms.sounds)


@lru_cache(maxsize=50_000)
def _hebrew_forms(word: str) -> WordForms:
    # "האחריות" is no form of the word "אחרי": the remaining word must be informative.
    bare = tuple(form for form in tokenizer.bare_forms(word) if form not in HEBREW.function)
    sounds = {key: None for form in (word, *bare) if (key := sound_key(form))}
    return WordForms(word, bare=bare, sounds=tuple(sounds))


@lru_cache(maxsize=50_000)
def _stemmed_forms(word: str, script: str, camel_parts: tuple[str, ...], named: bool) -> WordForms:
    parts = tuple(dict.fromkeys(tokenizer.stem(part) for part in camel_parts))
    own = tokenizer.stem(word) if script == "latin" else word
    key = sound_key(word) if named else None
    sounds = (key,) if key else ()
    return WordForms(own, bare=tokenizer.other_stems(word, script, own), parts=parts, sounds=sounds)


# A key for words that sound alike: the same name in Hebrew and Latin letters, or misspelt.

MIN_SOUNDS = 4

_LATIN_PAIRS = (
    ("tsch", "s"), ("sch", "s"), ("sh", "s"), ("tz", "s"), ("ts", "s"), ("ch", "k"), ("kh", "k"),
    ("th", "t"), ("ph", "p"), ("ck", "k"), ("x", "ks"),
)  # fmt: skip
_SOFT_C = re.compile("c(?=[eiy])")
_LATIN_SOUNDS = str.maketrans("bcdfgjklmnpqrstvwz", "vkdpggklmnpkrstvvs", "aeiouyh")
_HEBREW_SOUNDS = str.maketrans("בגדזחטכלמנספצקרשת", "vgdsktklmnspskrst", "אהויע")
_REPEATS = re.compile(r"(.)\1+")


@lru_cache(maxsize=50_000)
def sound_key(word: str) -> str | None:
    """Return the consonants of a folded word in a common alphabet.

    Returns None if there are fewer than ``MIN_SOUNDS``, which would match by chance, or if the
    script is another.
    """
    if word.isascii() and word.isalpha():
        sounds = word
        for pair, sound in _LATIN_PAIRS:
            sounds = sounds.replace(pair, sound)
        sounds = _SOFT_C.sub("s", sounds).translate(_LATIN_SOUNDS)
    elif all("א" <= letter <= "ת" for letter in word):
        sounds = word.replace("וו", "ב").translate(_HEBREW_SOUNDS)
    else:
        return None
    key = _REPEATS.sub(r"\1", sounds)
    return key if len(key) >= MIN_SOUNDS else None
