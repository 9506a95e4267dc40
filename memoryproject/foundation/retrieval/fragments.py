"""Recognise quotations and paraphrases of texts to forget, and cut them out of other texts.

A text is compared as a whole and by its sentences. Words are compared without case; in scripts
without spaces each character counts as a word. Only content words decide: a text of grammar words
alone ("how are you") is found nowhere.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from memoryproject.foundation.retrieval.query import query_terms
from memoryproject.foundation.text.terms import index_terms
from memoryproject.foundation.text.tokenizer import Kind

MARK = "[forgotten]"
# So many words in a row are a quotation of a longer text.
RUN = 8
# A shorter quotation is the whole text or sentence. A single word is in too many texts.
MIN_WORDS = 2
# With more words, looking for each takes longer than to split the text.
MAX_MARKS = 64

_CONTENT = (Kind.COMMON, Kind.PLAIN, Kind.NAME)
# Forms with these prefixes are synonyms, roots and sounds of a word, not the word itself.
_OTHER_WORDS = ("=", "*", "@", "?")
_WORD = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\W_]+")
# The borders of sentences and lines. Text indented below a line belongs to it, like the lines of a
# list.
_BETWEEN = re.compile(r"(?<=[.!?…。！？؟])(?=\s)(?!\n {4})|(?<=[。！？])|(?<=\n)(?! {4})")


@dataclass(frozen=True)
class _Unit:
    """A text to forget, or a sentence of one.

    ``words`` are joined by spaces, with a space at either end. ``content`` maps the forms of each
    content word to the word. ``numbers`` are the content words with a digit, such as a code.
    """

    words: str
    length: int
    forms: dict[str, str]
    content: frozenset[str]
    numbers: frozenset[str]


# The index terms of a sentence that stays.
Kept = frozenset[str]


class Fragments:
    """Texts to forget, and how they are recognised in other texts."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: set[str] = set()
        self._by_first_word: defaultdict[str, list[_Unit]] = defaultdict(list)
        self._by_form: defaultdict[str, list[_Unit]] = defaultdict(list)
        self._runs: set[tuple[str, ...]] = set()
        # A long word of each unit and run: the words that few other texts hold.
        self._marks: set[str] = set()
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Add this text to the search."""
        if text in self._texts:
            return
        self._texts.add(text)
        self._runs.update(runs := list(_runs(_words(text))))
        self._marks.update(max(run, key=len) for run in runs)
        for unit in _units(text):
            self._marks.add(max(unit.words.split(), key=len))
            self._by_first_word[unit.words.split(" ", 2)[1]].append(unit)
            for form in unit.forms:
                self._by_form[form].append(unit)

    def __bool__(self) -> bool:
        return bool(self._by_first_word)

    def are_in(self, text: str) -> bool:
        """Return whether the text quotes one: the whole of it, a sentence, or ``RUN`` words."""
        return self._quotes(text, MIN_WORDS)

    def words_are_in(self, text: str) -> bool:
        """Return whether the text quotes one, also a text of a single word."""
        return self._quotes(text, 1)

    def repeated_in(self, text: str, kept: Callable[[], Sequence[Kept]] = list) -> bool:
        """Return whether the text quotes one of the texts, or says the same in other words.

        It does if it holds all content words of a text or sentence, or half of them and at least
        two (any two, if it also quotes ``RUN`` words), or one of its numbers.

        ``kept`` returns the terms of each sentence that stays and that the text may have its words
        from: where it doesn't quote a whole sentence, words that one of them holds together tell
        nothing.
        """
        joined, terms = _joined(text), set(index_terms(text))
        shared: defaultdict[str, set[str]] = defaultdict(set)
        units: dict[str, _Unit] = {}
        for form in terms & self._by_form.keys():
            for unit in self._by_form[form]:
                units[unit.words] = unit
                shared[unit.words].add(unit.forms[form])
        half = 0.0 if shared and self._runs_in(text) else 0.5
        for key, words in shared.items():
            unit = units[key]
            is_enough = words == unit.content or len(words) >= max(2, len(unit.content) * half)
            telling = words if is_enough else words & unit.numbers
            is_verbatim = unit.length >= MIN_WORDS and unit.words in joined
            if is_verbatim or telling and not _explained(telling, unit, kept()):
                return True
        return False

    def cut(self, text: str, kept: Callable[[], Sequence[Kept]] = list) -> tuple[str, list[str]]:
        """Return the text without the sentences and lines that repeat a text, and these.

        Each is replaced by ``MARK``. The text is unchanged if nothing repeats. ``kept``: see
        ``repeated_in``.
        """
        return _cut(
            text,
            lambda piece: self.repeated_in(piece, kept),
            lambda left: self.are_in(left) and self.repeated_in(left, kept),
        )

    def quotes_cut(self, text: str, *, single_words: bool = False) -> str:
        """Return the text without the sentences and lines that quote one of the texts.

        ``single_words``: also without those that hold a text of a single word.
        """
        quotes = self.words_are_in if single_words else self.are_in
        return _cut(text, quotes, quotes)[0] if quotes(text) else text

    def cleaned(self, value: Any) -> Any:
        """Return a JSON value with every string that quotes a text replaced by ``MARK``."""
        if isinstance(value, str):
            return MARK if self.are_in(value) else value
        if isinstance(value, list):
            return [self.cleaned(item) for item in value]
        if isinstance(value, dict):
            return {
                MARK if self.are_in(str(key)) else key: self.cleaned(item)
                for key, item in value.items()
            }
        return value

    def _quotes(self, text: str, fewest_words: int) -> bool:
        # Most texts hold none of the words: to split each into words would take longer than all
        # else of a forgetting.
        folded = text.casefold()
        if len(self._marks) <= MAX_MARKS and not any(map(folded.__contains__, self._marks)):
            return False
        joined = _joined(text)
        return any(
            unit.words in joined
            for word in self._by_first_word.keys() & set(joined.split())
            for unit in self._by_first_word[word]
            if unit.length >= fewest_words
        ) or self._runs_in(text)

    def _runs_in(self, text: str) -> bool:
        return bool(self._runs) and not self._runs.isdisjoint(_runs(_words(text)))


def kept_sentences(texts: Iterable[str]) -> list[Kept]:
    """Return the terms of each sentence of texts that stay; see ``Fragments.repeated_in``."""
    pieces = (piece for text in texts for piece in _pieces(text) if piece.strip())
    return [frozenset(index_terms(piece)) for piece in pieces]


def _explained(words: set[str], unit: _Unit, kept: Sequence[Kept]) -> bool:
    """Return whether a sentence that stays holds these words of a unit."""
    forms: defaultdict[str, set[str]] = defaultdict(set)
    for form, word in unit.forms.items():
        forms[word].add(form)
    return any(all(not forms[word].isdisjoint(sentence) for word in words) for sentence in kept)


def _cut(
    text: str, is_trace: Callable[[str], bool], is_left: Callable[[str], bool]
) -> tuple[str, list[str]]:
    """Cut the traces; ``is_left`` says whether one extends over several of the kept sentences."""
    kept: list[str] = []
    gone: list[str] = []
    for piece in _pieces(text):
        if not is_trace(piece):
            kept.append(piece)
            continue
        gone.append(piece.strip())
        if not kept or kept[-1].strip() != MARK:
            blank = piece[: len(piece) - len(piece.lstrip())]
            kept.append(blank + MARK + ("\n" if piece.endswith("\n") else ""))
    cleaned = "".join(kept).strip()
    if is_left(cleaned.replace(MARK, " ")):
        return MARK, [text]
    return (cleaned, gone) if gone else (text, [])


@lru_cache(maxsize=4_096)
def _units(text: str) -> tuple[_Unit, ...]:
    pieces = _pieces(text)
    units = (_unit(part) for part in dict.fromkeys([text, *(pieces if len(pieces) > 1 else ())]))
    return tuple(unit for unit in units if unit.content)


def _unit(text: str) -> _Unit:
    joined = _joined(text)
    terms = [term for term in query_terms(text) if term.kind in _CONTENT]
    forms = {
        form: term.word
        for term in terms
        for form in term.forms
        if not form.startswith(_OTHER_WORDS)
    }
    content = frozenset(term.word for term in terms) if joined.strip() else frozenset()
    numbers = frozenset(
        word for word in content if len(word) > MIN_WORDS and any(map(str.isdigit, word))
    )
    return _Unit(joined, len(joined.split()), forms, content, numbers)


def _joined(text: str) -> str:
    return f" {' '.join(_words(text))} "


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _runs(words: list[str]) -> Iterator[tuple[str, ...]]:
    for start in range(len(words) - RUN + 1):
        yield tuple(words[start : start + RUN])


def _pieces(text: str) -> list[str]:
    """Return the sentences and lines of a text; together they are the text."""
    return [piece for piece in _BETWEEN.split(text) if piece]
