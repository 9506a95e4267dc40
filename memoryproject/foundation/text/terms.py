"""What a text is indexed under: plain strings, one column's worth, for any database.

A term is the word itself (English words by their stem) or, behind one mark, what may also find
it: ``~`` a form without prefix or ending, ``@`` how it sounds, ``=`` what it means, ``*`` a root.
Behind ``?`` stands what kind of answer the whole text holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from memoryproject.foundation.text import hebrew_words
from memoryproject.foundation.text.answers import answer_kinds_of_text
from memoryproject.foundation.text.concepts import CONCEPTS
from memoryproject.foundation.text.english import stem
from memoryproject.foundation.text.hebrew import bare_forms, root
from memoryproject.foundation.text.kinds import Kind, kind_of
from memoryproject.foundation.text.sound import sound_key
from memoryproject.foundation.text.tokens import MAX_TERM, Token, tokenize

MAX_TERMS = 60_000


@dataclass(frozen=True)
class IndexedText:
    """The ``terms`` of a text, repeated as often as they occur, and its ``length`` in words."""

    terms: list[str]
    length: int


@dataclass(frozen=True)
class WordForms:
    """One word as it is compared: ``word``, its ``bare`` forms, ``sounds``, ``concept`` and
    ``root``.

    ``parts`` find a text that holds the word; the word doesn't find a text with a part only.
    """

    word: str
    bare: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    sounds: tuple[str, ...] = ()
    concept: str | None = None
    root: str | None = None


def index_text(text: str) -> IndexedText:
    """The terms and the length of ``text``, of which ``tokens.MAX_TEXT`` characters are read.

    At most ``MAX_TERMS`` terms, each of 1 to ``tokens.MAX_TERM`` + 2 characters without NUL.
    """
    terms: list[str] = []
    length = 0
    before: Token | None = None
    for token in tokenize(text):
        length += not token.whole
        terms.extend(_token_terms(token))
        if before is not None and before.capitalised and token.capitalised:
            # "Test Corp" is also looked for as "TestCorp".
            terms.append("~" + stem(before.text + token.text)[:MAX_TERM])
        before = token
        if len(terms) >= MAX_TERMS:
            break
    answers = ["?" + kind for kind in answer_kinds_of_text(text)]
    if "?amount" in answers:
        answers.append("=money")
    return IndexedText([*answers, *terms][:MAX_TERMS], length)


def index_terms(text: str) -> list[str]:
    """The terms of ``text``, repeated as often as they occur."""
    return index_text(text).terms


def word_forms(token: Token) -> WordForms:
    """The forms under which ``token`` is indexed and looked for."""
    if token.script == "hebrew":
        return _hebrew_forms(token.text)
    if token.script == "latin" and not token.whole:
        return _latin_forms(token.text, token.camel_parts, kind_of(token))
    return WordForms(token.text)


def _token_terms(token: Token) -> Iterator[str]:
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
    # "האחריות" is no form of the word "אחרי": what is left must be a word that tells something.
    bare = tuple(form for form in bare_forms(word) if form not in hebrew_words.FUNCTION)
    concept = next((CONCEPTS[form] for form in (word, *bare) if form in CONCEPTS), None)
    sounds: dict[str, None] = {}
    if concept is None:
        sounds = {key: None for form in (word, *bare) if (key := sound_key(form))}
    telling = kind_of(Token(word, "hebrew")) not in (Kind.FUNCTION, Kind.VAGUE)
    return WordForms(
        word,
        bare=bare,
        sounds=tuple(sounds),
        concept=concept,
        root=root(word) if telling else None,
    )


@lru_cache(maxsize=50_000)
def _latin_forms(word: str, camel_parts: tuple[str, ...], kind: Kind) -> WordForms:
    parts = tuple(dict.fromkeys(stem(part) for part in camel_parts))
    # Only what may be a name is written by ear.
    key = sound_key(word) if kind in (Kind.PLAIN, Kind.NAME) else None
    sounds = (key,) if key else ()
    return WordForms(stem(word), parts=parts, sounds=sounds, concept=CONCEPTS.get(stem(word)))
