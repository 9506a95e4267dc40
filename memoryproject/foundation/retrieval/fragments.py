"""Find copies and parts of texts to forget, and remove them.

A fragment is a run of ``RUN`` words of a text; of a shorter text all its words. Words are compared
without case; in scripts without spaces each character counts as a word.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from memoryproject.foundation.retrieval.query import query_terms
from memoryproject.foundation.text.terms import index_terms
from memoryproject.foundation.text.tokenizer import Kind

MARK = "[forgotten]"
RUN = 4
# A text of fewer words than this is too common to search for inside other texts.
MIN_WORDS = 2

_WORD = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\W_]+")
# The borders of sentences and lines. Text indented below a line belongs to it, like the lines of a
# list.
_BETWEEN = re.compile(r"(?<=[.!?…])(?=\s)(?!\n {4})|(?<=\n)(?! {4})")


class Fragments:
    """The fragments of some texts.

    ``fewest_words``: a text of fewer words is found only if it is the entire text.
    """

    def __init__(self, texts: Iterable[str] = (), *, fewest_words: int = MIN_WORDS) -> None:
        self._fewest_words = fewest_words
        self._runs: set[tuple[str, ...]] = set()
        self._lengths: set[int] = set()
        self._whole: set[tuple[str, ...]] = set()
        # Informative words of texts and their sentences, and an index from words to them.
        self._informative: list[frozenset[str]] = []
        self._holding: defaultdict[str, list[int]] = defaultdict(list)
        self._quoted: list[str] = []
        for text in texts:
            self.add(text)

    def add(self, text: str) -> bool:
        """Add this text to the search; return whether it adds anything new."""
        words = _words(text)
        if not words or tuple(words) in self._whole:
            return False
        self._whole.add(tuple(words))
        if len(words) >= self._fewest_words:
            self._runs.update(_runs(words))
            self._lengths.add(_run_length(words))
        for informative in {_informative_words(part) for part in [text, *_pieces(text)]}:
            if len(informative) > 1:
                for word in informative:
                    self._holding[word].append(len(self._informative))
                self._informative.append(informative)
        return True

    def add_quoted(self, text: str) -> None:
        """Let ``cleaned`` also search for this text as a whole."""
        words = " ".join(_words(text))
        if words:
            self._quoted.append(words)

    def __bool__(self) -> bool:
        return bool(self._whole)

    def are_in(self, text: str) -> bool:
        """Return whether the text is one of the added texts, or holds a fragment of one."""
        words = _words(text)
        if tuple(words) in self._whole:
            return True
        return any(
            tuple(words[start : start + length]) in self._runs
            for length in self._lengths
            for start in range(len(words) - length + 1)
        )

    def repeated_in(self, text: str) -> bool:
        """Return whether the text holds a fragment, or repeats an added text in other words.

        It repeats a text if it holds half, and at least two, of the informative words of an added
        text or of a sentence in it.
        """
        if self.are_in(text):
            return True
        held = Counter(
            place for word in set(index_terms(text)) for place in self._holding.get(word, ())
        )
        return any(
            shared >= max(2, len(self._informative[place]) / 2) for place, shared in held.items()
        )

    def cut(self, text: str) -> tuple[str, list[str]]:
        """Return the text without its matching sentences and lines, and the removed parts.

        Each removed part is replaced by ``MARK``. The text is unchanged if nothing matches.
        """
        if not self.repeated_in(text):
            return text, []
        kept: list[str] = []
        gone: list[str] = []
        for piece in _pieces(text):
            if not self.repeated_in(piece):
                kept.append(piece)
                continue
            gone.append(piece.strip())
            if not kept or kept[-1].strip() != MARK:
                blank = piece[: len(piece) - len(piece.lstrip())]
                kept.append(blank + MARK + ("\n" if piece.endswith("\n") else ""))
        cleaned = "".join(kept).strip()
        if not gone or self.are_in(cleaned):
            # The match extends over several sentences.
            return MARK, [text]
        return cleaned, gone

    def cleaned(self, value: Any) -> Any:
        """Return a JSON value with every string that holds a fragment replaced by ``MARK``."""
        if isinstance(value, str):
            return MARK if self.are_in(value) or self._quotes(value) else value
        if isinstance(value, list):
            return [self.cleaned(item) for item in value]
        if isinstance(value, dict):
            return {
                MARK if self.are_in(str(key)) else key: self.cleaned(item)
                for key, item in value.items()
            }
        return value

    def _quotes(self, text: str) -> bool:
        if not self._quoted:
            return False
        words = " ".join(_words(text))
        return any(quoted in words for quoted in self._quoted)


def is_single_informative_word(text: str) -> bool:
    """Return whether a text is a single informative word, such as a number or a name.

    Such a word is too common to search for everywhere, but it can be an entire fact.
    """
    return len(_words(text)) < MIN_WORDS and bool(_informative_words(text))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _informative_words(text: str) -> frozenset[str]:
    """Return the words that say what the text is about."""
    return frozenset(
        term.word for term in query_terms(text) if term.kind in (Kind.NAME, Kind.PLAIN)
    )


def _runs(words: list[str]) -> Iterator[tuple[str, ...]]:
    length = _run_length(words)
    for start in range(len(words) - length + 1):
        yield tuple(words[start : start + length])


def _run_length(words: list[str]) -> int:
    return min(RUN, len(words))


def _pieces(text: str) -> list[str]:
    """Return the sentences and lines of a text; together they are the text."""
    return [piece for piece in _BETWEEN.split(text) if piece]
