"""The words of a sentence with what is between them, for the rules that find names."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from cards_app.rules.gazetteer import MAX_WORDS, gazetteer, key_of, keys
from cards_app.rules.words import split_words, without_points
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.word_lists import ENGLISH, HEBREW, OTHERS

MIN_NAME_LENGTH = 3
FUNCTION_WORDS = ENGLISH.function | ENGLISH.vague | HEBREW.function | HEBREW.vague | OTHERS
COMMON_WORDS = FUNCTION_WORDS | ENGLISH.common | HEBREW.common

_HEBREW = re.compile("[א-ת]")
_UNCASED = re.compile("[א-ת\u0620-\u064a]")
# Between the words of one name: "Dana Levi", "Tel-Aviv", "Marlowe's Bakehouse", "Marks & Spencer".
_JOINING = re.compile(" |[-־]|['’]s | & ")
_MARKS = re.compile("[\"״”'׳’]")
_CODE = re.compile("`[^`]*`")
_GERESH = ("'", "׳", "’")
_HEBREW_PREFIXES = [a + b for a in ("", "ו", "ש", "כש", "וש") for b in ("", "ב", "ל", "מ")][1:]
_ARABIC_PREFIXES = [a + b for a in ("", "و", "ف") for b in ("", "ب", "ل", "لل")][1:]


@dataclass(frozen=True)
class Mention:
    """A name as it is shown, and its key. If it isn't ``sure``, others have to prove it."""

    text: str
    key: str
    sure: bool = True


@dataclass(frozen=True)
class Word:
    """A word of a sentence; ``before``: the characters between it and the word before."""

    text: str
    key: str
    start: int
    end: int
    before: str

    @property
    def capital(self) -> bool:
        return self.text[0].isupper() or self.text[0].istitle()

    @property
    def uncased(self) -> bool:
        return is_uncased(self.text)

    @property
    def function(self) -> bool:
        """Return whether it is a word of grammar or the like, in any language."""
        return fold(self.text) in FUNCTION_WORDS

    def readings(self) -> Iterator[tuple[str, str]]:
        """Yield prefix letters that the word may have, first none, and the word without them."""
        yield "", self.text
        for prefix in prefixes(self.text):
            if self.text.startswith(prefix) and len(self.text) > len(prefix) + 1:
                rest = self.text[len(prefix) :]
                yield prefix, "ال" + rest if prefix.endswith("لل") else rest


class SentenceWords(list[Word]):
    """The words of one sentence, without niqqud and code."""

    def __init__(self, sentence: str) -> None:
        self.text = without_points(_CODE.sub(" ", sentence))
        super().__init__(_words_of(self.text))
        self.names = gazetteer()

    def place(self, start: int) -> int:
        """Return the word at a character; the word may have prefix letters before it."""
        return max(0, bisect_right(self, start, key=lambda word: word.start) - 1)

    def between(self, place: int, end: int) -> str:
        return self.text[self[place].start : self[end - 1].end]

    def key(self, place: int, end: int) -> str:
        return " ".join(word.key for word in self[place:end])

    def joined(self, place: int) -> bool:
        """Return whether the word may belong to one name with the word before."""
        return place > 0 and _JOINING.fullmatch(self[place].before) is not None

    def together(self, place: int) -> int:
        """Return how many words from the place on stand together, at most MAX_WORDS."""
        count = 1
        while count < MAX_WORDS and place + count < len(self) and self.joined(place + count):
            count += 1
        return count

    def ends(self, place: int) -> bool:
        """Return whether no word stands right behind the word."""
        return self.together(place) == 1

    def with_family(self, end: int) -> int:
        """Return the place after the family names that follow a given name."""
        while end < len(self) and self.joined(end):
            particle = self._is_particle(end)
            if not particle and not self._is_family(end):
                break
            end += 1 + particle
        return end

    def _is_particle(self, place: int) -> bool:
        """Return whether the word stands before a family name, unlike that in "בן שש"."""
        before_more = self[place].key in keys("particles") and self.together(place) > 1
        return before_more and not is_common(self[place + 1].key)

    def _is_family(self, place: int) -> bool:
        key = self[place].key
        if key in self.names.also_words:
            return self.ends(place) and key in self.names.family and not is_common(key)
        return self.names.person(key) is not None or key.endswith(tuple(keys("family_endings")))


def is_hebrew(text: str) -> bool:
    return _HEBREW.search(text) is not None


def is_uncased(text: str) -> bool:
    """Return whether the text starts in a script without capitals that has rules here."""
    return _UNCASED.match(text) is not None


def prefixes(word: str) -> list[str]:
    """Return the prefix letters that words may have in the script of the word."""
    if not is_uncased(word):
        return []
    return _HEBREW_PREFIXES if is_hebrew(word) else _ARABIC_PREFIXES


def is_common(key: str, words: frozenset[str] = COMMON_WORDS) -> bool:
    bare = without_marks(key)
    known = (words, keys("no_names"), keys("not_names"), keys("languages"))
    forms = (bare, *(bare.removeprefix(each) for each in ("ה", "ו", "و")))
    return any(form in of for form in forms for of in known)


def without_marks(word: str) -> str:
    """Return the word without gershayim and apostrophes."""
    return _MARKS.sub("", word)


def _words_of(sentence: str) -> list[Word]:
    found: list[Word] = []
    last = 0
    for text in split_words(sentence):
        start = sentence.find(text, last)
        end = start + len(text)
        # The apostrophe belongs to the last letter: ברקוביץ'
        quoted = sentence[start - 1 : start] in _GERESH
        if is_hebrew(text) and sentence[end : end + 1] in _GERESH and not quoted:
            end += 1
        word = sentence[start:end]
        found.append(Word(word, key_of(word), start, end, sentence[last:start]))
        last = end
    return found
