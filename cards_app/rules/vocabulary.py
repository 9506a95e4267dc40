"""Count the entities and keywords of a card, message by message."""

from collections import Counter
from collections.abc import Iterable

from cards_app.rules.gazetteer import LISTS, gazetteer
from cards_app.rules.names import asks_for_name, find_mentions
from cards_app.rules.phrases import HEBREW_STOP_WORDS, STOP_WORDS
from cards_app.rules.sentence_words import SentenceWords, is_hebrew, is_uncased, prefixes
from cards_app.rules.session_data import Line
from cards_app.rules.words import (
    MAX_WORD_LENGTH,
    Sentence,
    folded,
    letter_count,
    split_sentences,
    split_words,
)
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.tokenizer import without_prefixes
from memoryproject.foundation.text.word_lists import HEBREW, OTHERS

MAX_ENTITIES = 10
MAX_KEYWORDS = 10
MIN_KEYWORD_LENGTH = 5

_CODE = "```"
_NO_KEYWORDS = STOP_WORDS | HEBREW_STOP_WORDS
# Without words that mean something in English, whose stop words are seed 001's.
_OTHER_STOP_WORDS = {*OTHERS, *map(fold, " ".join(LISTS["no_keywords"]).split())} - {
    "comment",
    "favor",
}
# "and", "that", "when", "the": written as prefixes of any word.
_BEFORE_STOP_WORDS = ("וכש", "כש", "וש", "וה", "ו", "ש", "ה")


class EntityCounter:
    """The names of a conversation: see ``names.py``.

    A name that isn't sure where it stands counts if it is sure elsewhere.
    """

    def __init__(self) -> None:
        # By key, in order of first appearance.
        self._seen: Counter[str] = Counter()
        self._spelled: dict[str, str] = {}
        self._without_capital: Counter[str] = Counter()
        self._name_requested = False

    def add(self, sentences: Iterable[Sentence]) -> None:
        """Count the names of one message."""
        requested = in_code = False
        for number, sentence in enumerate(sentences):
            marks = sentence.text.count(_CODE)
            in_code ^= marks % 2 == 1
            if in_code or marks % 2:
                continue
            words = SentenceWords(sentence.text)
            for mention in find_mentions(words, answers=self._name_requested and number == 0):
                if len(mention.text) <= MAX_WORD_LENGTH:
                    self._seen[mention.key] += 1
                    if mention.sure:
                        # Of a Russian name's cases, the first has no ending, or "а".
                        known = self._spelled.get(mention.key, mention.text)
                        self._spelled[mention.key] = min(known, mention.text, key=_case)
            self._without_capital.update(word.key for word in words if not word.capital)
            requested = requested or asks_for_name(sentence.text)
        self._name_requested = requested

    def found(self, most: int | None = MAX_ENTITIES) -> list[str]:
        """Return the most frequent first; for equal counts the one that appeared first."""
        names = [key for key in self._seen if key in self._spelled and not self._is_word(key)]
        longer = _longer_names(names)
        counts: Counter[str] = Counter()
        for key in names:
            counts[longer.get(key, key)] += self._count(key)
        return [self._spelled[key] for key in _ranked(counts)[:most]]

    def _is_word(self, key: str) -> bool:
        """Return whether the word mostly has no capital, as ordinary words."""
        often = self._without_capital[key] > self._seen[key]
        return often and not is_uncased(key) and gazetteer().sure(key) is None

    def _count(self, key: str) -> int:
        """Return how often the name occurs. One without capitals counts also where no cue is."""
        everywhere = self._without_capital[key]
        everywhere += sum(self._without_capital[prefix + key] for prefix in prefixes(key))
        return max(self._seen[key], everywhere)


def _case(name: str) -> tuple[int, bool]:
    return len(name), not name.endswith(("а", "я"))


def _longer_names(names: Iterable[str]) -> dict[str, str]:
    """Return the names that are meant by a part of them: "Dana Levi" by "Dana".

    There are none for a part of two names, nor for towns, which firms have in their names.
    """
    longer: dict[str, list[str]] = {}
    for name in names:
        parts = name.split(" ")
        for cut in range(1, len(parts)):
            for part in (" ".join(parts[:cut]), " ".join(parts[cut:])):
                longer.setdefault(part, []).append(name)
    places = gazetteer().places
    longest = {part: max(of, key=len) for part, of in longer.items() if part not in places}
    return {
        part: name
        for part, name in longest.items()
        if all(f" {each} " in f" {name} " for each in longer[part])
    }


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
    if word in _NO_KEYWORDS or fold(word) in _OTHER_STOP_WORDS:
        return True
    if not is_hebrew(word[0]):
        return False
    rests = [word, *(word[len(each) :] for each in _BEFORE_STOP_WORDS if word.startswith(each))]
    return any(rest in HEBREW_STOP_WORDS or fold(rest) in HEBREW.function for rest in rests)


def _ranked(counts: Counter[str]) -> list[str]:
    """Sort by count; sorting keeps the order of first appearance among equal counts."""
    return sorted(counts, key=lambda word: -counts[word])
