"""Count the entities and keywords of a card, message by message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cards_app.rules.hebrew_names import (
    MIN_NAME_LENGTH,
    is_hebrew,
    mentioned_names,
    name_in,
    towns_of_two_words,
)
from cards_app.rules.phrases import HEBREW_STOP_WORDS, NO_ENTITIES, STOP_WORDS
from cards_app.rules.session_data import Line
from cards_app.rules.words import Sentence, folded, letter_count, split_sentences, split_words
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.hebrew import without_prefixes
from memoryproject.foundation.text.word_lists import ENGLISH, HEBREW

MAX_ENTITIES = 10
MAX_KEYWORDS = 10
MIN_ENTITY_LENGTH = 3
MIN_KEYWORD_LENGTH = 5

_COMMON_ENGLISH = (ENGLISH.function, ENGLISH.vague, ENGLISH.common)
_NO_KEYWORDS = STOP_WORDS | HEBREW_STOP_WORDS
# "and", "that", "when", "the": written as prefixes of any word.
_BEFORE_STOP_WORDS = ("וכש", "כש", "וש", "וה", "ו", "ש", "ה")


class EntityCounter:
    """Capitalised words of three letters or more; in Hebrew recognised names.

    Every word at the start of a sentence has a capital. There a word counts only if it has more
    capitals ("PostgreSQL"), is among Hebrew words and no common English word ("Thanks דנה"), or
    also has a capital within a sentence.
    """

    def __init__(self) -> None:
        # In order of first appearance: capitalised words, and all words in Hebrew.
        self._seen: Counter[str] = Counter()
        self._sure: set[str] = set()
        self._marked: set[str] = set()

    def add(self, sentences: Iterable[Sentence]) -> None:
        """Count the entities of one message."""
        for sentence in sentences:
            words = list(split_words(sentence.text))
            hebrew = is_hebrew(sentence.text)
            towns = dict(towns_of_two_words(words)) if hebrew else {}
            for place, word in enumerate(words):
                if place in towns:
                    self._seen[towns[place]] += 1
                    self._sure.add(towns[place])
                elif place - 1 in towns:
                    continue
                elif hebrew and is_hebrew(word[0]):
                    self._seen[folded(word)] += 1
                elif _is_name(word):
                    self._seen[word] += 1
                    if place > 0 or (hebrew and _is_rare(word)) or _has_further_capitals(word):
                        self._sure.add(word)
            if hebrew:
                self._marked.update(mentioned_names(sentence.text, words))

    def found(self, most: int | None = MAX_ENTITIES) -> list[str]:
        """Return the most frequent first; for equal counts the one that appeared first."""
        counts: Counter[str] = Counter()
        for word, count in self._seen.items():
            name = word if word in self._sure else self._hebrew_name(word)
            if name is not None:
                counts[name] += count
        return _ranked(counts)[:most]

    def _hebrew_name(self, word: str) -> str | None:
        name = name_in(word, self._marked) if is_hebrew(word[0]) else None
        return name if name is not None and letter_count(name) >= MIN_NAME_LENGTH else None


class KeywordCounter:
    """Words of five letters or more that aren't stop words, in lower case."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """Count the keywords of a message."""
        words = map(folded, split_words(text))
        self._seen.update(word for word in words if letter_count(word) >= MIN_KEYWORD_LENGTH)

    def found(self, most: int | None = MAX_KEYWORDS) -> list[str]:
        """Return the most frequent first; for equal counts the one that appeared first.

        A Hebrew word with prefix letters counts as the word without them if that also occurs alone.
        """
        counts: Counter[str] = Counter()
        for word, count in self._seen.items():
            if is_keyword(word):
                counts[self._bare(word)] += count
        return _ranked(counts)[:most]

    def _bare(self, word: str) -> str:
        if not is_hebrew(word[0]):
            return word
        barest_first = without_prefixes(word)[:0:-1]
        alone = (rest for rest in barest_first if rest in self._seen and is_keyword(rest))
        return next(alone, word)


def find_entities(lines: Iterable[Line], *, most: int | None = MAX_ENTITIES) -> list[str]:
    """Return the entities of a conversation: see EntityCounter."""
    entities = EntityCounter()
    for line in lines:
        entities.add(split_sentences(line.content))
    return entities.found(most)


def is_keyword(word: str) -> bool:
    """Return whether a folded word may be a keyword."""
    return letter_count(word) >= MIN_KEYWORD_LENGTH and not _is_stop_word(word)


def _is_stop_word(word: str) -> bool:
    if word in _NO_KEYWORDS:
        return True
    if not is_hebrew(word[0]):
        return False
    rests = [word, *(word[len(each) :] for each in _BEFORE_STOP_WORDS if word.startswith(each))]
    return any(rest in HEBREW_STOP_WORDS or fold(rest) in HEBREW.function for rest in rests)


def _ranked(counts: Counter[str]) -> list[str]:
    """Sort by count; sorting keeps the order of first appearance among equal counts."""
    return sorted(counts, key=lambda word: -counts[word])


def _is_name(word: str) -> bool:
    first = word[0]
    return (
        (first.isupper() or first.istitle())
        and letter_count(word) >= MIN_ENTITY_LENGTH
        and word.lower() not in NO_ENTITIES
    )


def _is_rare(word: str) -> bool:
    return not any(folded(word) in words for words in _COMMON_ENGLISH)


def _has_further_capitals(word: str) -> bool:
    return any(character.isupper() for character in word[1:])
