"""The entities and keywords of a card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cards_app.rules.lines import Line
from cards_app.rules.phrases import HEBREW_STOP_WORDS, NO_ENTITIES, STOP_WORDS
from cards_app.rules.sentences import split_sentences
from cards_app.rules.words import folded, letter_count, split_words

MOST_ENTITIES = 10
MOST_KEYWORDS = 10
SHORTEST_ENTITY = 3
SHORTEST_KEYWORD = 5

_NO_KEYWORDS = STOP_WORDS | HEBREW_STOP_WORDS


def find_entities(lines: Iterable[Line], *, most: int | None = MOST_ENTITIES) -> list[str]:
    """Capitalised words of three letters or more, the most frequent first, then the one that
    came first.

    At a sentence's start every word has a capital, so there a word counts only if it has
    further ones ("PostgreSQL") or stands with one within a sentence, too.
    """
    seen: Counter[str] = Counter()
    sure: set[str] = set()
    for line in lines:
        for sentence in split_sentences(line.content):
            for place, word in enumerate(split_words(sentence.text)):
                if _is_name(word):
                    seen[word] += 1
                    if place > 0 or _has_further_capitals(word):
                        sure.add(word)
    # Sorting keeps the order of first appearance among equals.
    ranked = sorted((word for word in seen if word in sure), key=lambda word: -seen[word])
    return ranked[:most]


def find_keywords(lines: Iterable[Line], *, most: int | None = MOST_KEYWORDS) -> list[str]:
    """Words of five letters or more that aren't stop words, in lower case, the most frequent
    first, then the one that came first."""
    seen = Counter(folded(word) for line in lines for word in split_words(line.content))
    ranked = sorted(filter(is_keyword, seen), key=lambda word: -seen[word])
    return ranked[:most]


def is_keyword(word: str) -> bool:
    """True for a folded word that may be a keyword."""
    return letter_count(word) >= SHORTEST_KEYWORD and word not in _NO_KEYWORDS


def _is_name(word: str) -> bool:
    first = word[0]
    return (
        (first.isupper() or first.istitle())
        and letter_count(word) >= SHORTEST_ENTITY
        and word.lower() not in NO_ENTITIES
    )


def _has_further_capitals(word: str) -> bool:
    return any(character.isupper() for character in word[1:])
