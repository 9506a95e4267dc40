"""Show the changes from one text to another, word by word."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from memories_app.facts import facts, lexicon
from memories_app.facts.fact_parser import WORD, tokens_of
from memoryproject.foundation.text import tokenizer, word_lists

SAME, GONE, NEW = "same", "gone", "new"

# A word includes the spaces after it, so that shared spaces alone never match.
_WORD = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
# The comparison is quadratic at worst: longer texts are shown as replaced.
MAX_COMPARED = 4_000_000


@dataclass(frozen=True)
class Piece:
    """Some words; ``kind`` is same, gone (only the older text has them) or new."""

    kind: str
    text: str


def word_diff(older: str, newer: str) -> list[Piece]:
    """Return the pieces of both texts in reading order.

    Without the new pieces they are ``older``, without the gone pieces ``newer``.
    """
    before, after = _WORD.findall(older), _WORD.findall(newer)
    start = _shared(before, after)
    end = _shared(before[start:][::-1], after[start:][::-1])
    pieces = [Piece(SAME, "".join(before[:start]))]
    pieces += _compared(before[start : len(before) - end], after[start : len(after) - end])
    pieces.append(Piece(SAME, "".join(before[len(before) - end :])))
    return [piece for piece in pieces if piece.text]


def _shared(before: Sequence[str], after: Sequence[str]) -> int:
    """Return the number of words with which both begin."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        count += 1
    return count


def _compared(before: Sequence[str], after: Sequence[str]) -> Iterator[Piece]:
    if len(before) * len(after) > MAX_COMPARED:
        yield from (Piece(GONE, "".join(before)), Piece(NEW, "".join(after)))
        return
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, first, last, new_first, new_last in matcher.get_opcodes():
        if kind == "equal":
            yield Piece(SAME, "".join(before[first:last]))
            continue
        yield Piece(GONE, "".join(before[first:last]))
        yield Piece(NEW, "".join(after[new_first:new_last]))


# Measure how much two texts have in common, so that people can decide whether to merge them.

_GRAMMAR = word_lists.ENGLISH.function | word_lists.HEBREW.function


@dataclass(frozen=True)
class Shape:
    """The compared parts of a text.

    These are the stems of its content words, its numbers, days and identifiers with the words that
    tell whose something is, and whether it negates.
    """

    words: frozenset[str]
    values: frozenset[str]
    negated: bool

    def shared(self, other: "Shape") -> float:
        """Return the share of content words that both have, in [0, 1].

        It is 0 if numbers or negation differ: such texts never state the same.
        """
        if self.values != other.values or self.negated != other.negated:
            return 0.0
        together = self.words | other.words
        return len(self.words & other.words) / len(together) if together else 0.0


def shape_of(content: str) -> Shape:
    """Return the shape of a text, for comparing it with others."""
    tokens = tokens_of(facts.folded(content))
    words = {token.text for token in tokens}
    return Shape(
        words=frozenset(
            tokenizer.stem(token.text)
            for token in tokens
            if token.kind == WORD and token.text not in _GRAMMAR
        ),
        values=frozenset(
            token.text for token in tokens if token.kind != WORD or token.text in lexicon.ANOTHERS
        ),
        negated=bool(words & (lexicon.NEGATIONS | lexicon.NO_THERE_IS | lexicon.ANTONYMS.keys())),
    )
