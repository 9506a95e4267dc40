"""Find the reasons why a fact isn't what its passage states, so that it waits for staff."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import date

from memoryproject.foundation.text.tokenizer import Kind, kind_of, tokenize
from sessions_app.extraction import statement_words as lexicon
from sessions_app.extraction.passage import Clause, is_negation, words_of
from sessions_app.extraction.stated_numbers import numbers_stand
from sessions_app.extraction.statement_words import Words

# Scripts, and letters of these scripts, of languages whose negations aren't known here.
_UNKNOWN_LETTER = re.compile(
    r"[^\W\d_\u0000-\u024f\u0300-\u052f\u0590-\u06ff\u1e00-\u1eff\ufb1d-\ufb4f]"
    r"|[\u0370-\u03ff\u0530-\u058fپچژگیکјљњђћışğłąęśźżćńășțřůěčžšđåæøőűơư]"
)
# "Gluten free" and "I'm free on Monday" promise nothing.
_FREE = re.compile(
    r"(?:\b(?:is|are|for|get|gets|give|gives|a|an|always|with) free\b"
    r"|(?<!-)\bfree (?:delivery|shipping|cake|coffee|of charge|meal|drink|gift|service)\b)"
)
_OTHER_HAS = re.compile(r"\b[A-Z][a-z]+ (?:has|is|had|was|suffers|got)\b")
_CASE_CARE = re.compile(r"[^\W_]+")


def doubts_of(content: str, *, clause: Clause, is_owners: bool, written_on: date) -> Iterator[str]:
    """Yield the reasons, in a few words each; nothing if the clause states the fact."""
    noted = words_of(content)
    if not _is_known_language(clause.text):
        yield "language"
    if not numbers_stand(content, clause=clause.text, written_on=written_on):
        yield "number"
    if _negations(noted, content) != _negations(clause.words, clause.text):
        yield "negation"
    if _asks(clause):
        yield "question"
    if _is_supposed(clause) or (_wishes(clause.words) and not _wishes(noted)):
        yield "condition"
    obliges = _any(noted, lexicon.DUTIES) and not _any(clause.words, lexicon.DUTIES)
    if _orders(clause) or obliges or _any(noted, lexicon.ASSISTANT):
        yield "order"
    if _is_hearsay(clause):
        yield "hearsay"
    if not is_owners and _is_about_business(noted, clause):
        yield "about the business"
    if _is_others_health(content, noted, clause):
        yield "health of others"


def _any(words: list[str], known: Words) -> bool:
    return any(word in known for word in words)


def _is_known_language(text: str) -> bool:
    """Return whether the words by which a statement is judged are known in its language."""
    if _UNKNOWN_LETTER.search(unicodedata.normalize("NFC", text).lower()):
        return False
    latin = [token for token in tokenize(text) if token.script == "latin" and not token.part]
    known = [
        token
        for token in latin
        if kind_of(token) not in (Kind.PLAIN, Kind.NAME)
        or token.text in lexicon.FIRST
        or token.text in lexicon.LINKS
    ]
    return len(known) * 4 >= len(latin)


def _negations(words: list[str], text: str) -> int:
    """Count what denies or excepts. A pair such as "neither … nor" counts once."""
    is_portuguese = _any(words, lexicon.PORTUGUESE) or "ã" in text.lower()
    count = sum(is_negation(word) and not (word == "no" and is_portuguese) for word in words)
    return count or int(_any(words, lexicon.CORRELATIVES))


def _asks(clause: Clause) -> bool:
    words = [word for word in clause.words if word not in lexicon.YES_OR_NO]
    first = next((each for each in _CASE_CARE.findall(clause.text.casefold())), "")
    return (
        clause.asks
        or "¿" in clause.text
        or (bool(words) and words[0] in lexicon.ASKING)
        or first in lexicon.ASKING_BY_ACCENT
        or _any(words, lexicon.ASKING_ANYWHERE)
        or "יש לכם" in clause.text
    )


def _is_supposed(clause: Clause) -> bool:
    """Return whether a word of the sentence makes it a condition, a guess or a wish."""
    words = words_of(clause.sentences)
    text = f" {' '.join(words)} "
    if any(f" {phrase}" in text for phrase in lexicon.DOUBT_PHRASES):
        return True
    # In Russian, "would like" is a wish that may be noted as one.
    if any(
        word in lexicon.DOUBTS and not (word == "бы" and before in lexicon.WISHES)
        for before, word in zip(["", *words], words, strict=False)
    ):
        return True
    exact = _CASE_CARE.findall(unicodedata.normalize("NFC", clause.sentences).casefold())
    if any(word in lexicon.CONDITIONS_BY_ACCENT for word in exact):
        return True
    return any(
        word == "se" and after in lexicon.PORTUGUESE_IF
        for word, after in zip(words, words[1:], strict=False)
    )


def _wishes(words: list[str]) -> bool:
    return any(word.endswith(("'d", "'ll")) or word in lexicon.WISHES for word in words)


def _orders(clause: Clause) -> bool:
    text = f" {' '.join(words_of(clause.sentences))} "
    if any(f" {phrase}" in text for phrase in lexicon.ORDER_PHRASES):
        return True
    if clause.words[:1] and clause.words[0] in lexicon.ALWAYS:
        return True
    rest = list(clause.words)
    while rest and rest[0] in lexicon.BEFORE_ORDERS:
        rest.pop(0)
    return bool(rest) and rest[0] in lexicon.ORDERS


def _is_hearsay(clause: Clause) -> bool:
    words = words_of(clause.sentences)
    text = f" {' '.join(words)} "
    return any(f" {phrase}" in text for phrase in lexicon.HEARSAY_PHRASES) or any(
        word in lexicon.HEARSAY and before not in lexicon.OWN_WORDS
        for before, word in zip(["", *words], words, strict=False)
    )


def _is_about_business(noted: list[str], clause: Clause) -> bool:
    """Return whether a client tells how the business is, or what it grants."""
    words = clause.words
    if _any(words, lexicon.BENEFITS) or _FREE.search(" ".join(words)):
        return True
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        is_subject = not before or before in lexicon.LINKS
        # "So you know" tells nothing of the business.
        if word in lexicon.SECOND and is_subject and after != "know":
            return True
    if _any(words, lexicon.FIRST):
        return False
    return (
        _any(words, lexicon.SECOND)
        or _any(words, lexicon.BUSINESS)
        or _any(noted, lexicon.BUSINESS)
    )


def _is_others_health(content: str, noted: list[str], clause: Clause) -> bool:
    if not _any([*noted, *clause.words], lexicon.HEALTH):
        return False
    is_own = _any(clause.words, lexicon.FIRST) and not _OTHER_HAS.search(clause.text)
    return not is_own or _any(clause.words, lexicon.OTHERS)
