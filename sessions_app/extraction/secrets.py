"""Recognise facts that hold a password, a key or the number of a card or an account."""

from __future__ import annotations

import re
import unicodedata

from cards_app.rules.redact import redact
from memoryproject.foundation.text.characters import fold
from sessions_app.extraction import statement_words as lexicon
from sessions_app.extraction.passage import without_marks, words_of

_MARKS = ("[card]", "[iban]", "[secret]", "[account]")
# A part of a card's number is longer than the four digits by which cards are told apart.
_LONG_NUMBER = re.compile(r"\d(?:[ \u00a0._/-]{0,3}\d){7,}")
_CARD_LENGTH = re.compile(r"(?<![\d+])\d{4}(?:[ \u00a0._/-]{1,3}\d{4}){2,}(?!\d)")
_VALUE = re.compile(r"[^\s,;:=\"'“”«»]{4,200}")
# After one of these the next word is the secret, also without a digit.
_IS = re.compile(r"\s*(?:[^\W\d_]+\s+){0,3}?(?:is|was|es|era|é|היא|הוא|это|هي|هو|[:=—–-])\s*")
# What follows the name of a secret so closely may be the secret.
_NEAR = 80


def holds_secret(content: str, *, clause: str, message: str) -> bool:
    """Return whether the fact tells a secret of the message, in full or in part."""
    content, clause, message = map(_plain, (content, clause, message))
    for text in (content, clause):
        words = words_of(text)
        if _names_password(text, words):
            return True
        has_digit = any(character.isdigit() for character in text)
        if has_digit and _names_pin(words):
            return True
    if any(redact(content).count(mark) > content.count(mark) for mark in _MARKS):
        return True
    if _CARD_LENGTH.search(content):
        return True
    names_card = any(word in lexicon.PAYMENT_CARDS for word in words_of(content + " " + clause))
    if names_card and _LONG_NUMBER.search(content):
        return True
    return bool(_values(message) & set(_VALUE.findall(content)))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", without_marks(text))


def _names_password(text: str, words: list[str]) -> bool:
    folded = fold(text)
    return any(word in lexicon.PASSWORDS for word in words) or any(
        phrase in folded for phrase in lexicon.PASSWORD_PHRASES
    )


def _names_pin(words: list[str]) -> bool:
    if any(word in lexicon.PINS for word in words):
        return True
    names_code = any(word in lexicon.CODES for word in words)
    return names_code and any(word in lexicon.LOCKED for word in words)


def _values(message: str) -> set[str]:
    """Return the words with a digit that follow the name of a secret, also in another sentence."""
    found: set[str] = set()
    for name in re.finditer(r"[^\W_]+(?:[ -][^\W_]+)?", message):
        words = words_of(name.group())
        if _names_password(name.group(), words) or _names_pin(words):
            near = message[name.end() : name.end() + _NEAR]
            found |= {each for each in _VALUE.findall(near) if re.search(r"\d", each)}
            named = _IS.match(near)
            value = _VALUE.match(near, named.end()) if named else None
            if value:
                found.add(value.group())
    return found
