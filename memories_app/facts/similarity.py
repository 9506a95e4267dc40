"""Measure how much two texts have in common, so that people can decide whether to merge them."""

from __future__ import annotations

from dataclasses import dataclass

from memories_app.facts import lexicon
from memories_app.facts.fact_parser import WORD, folded, tokens_of
from memoryproject.foundation.text import english_words, hebrew_words
from memoryproject.foundation.text.stems import stem

_GRAMMAR = english_words.FUNCTION | hebrew_words.FUNCTION


@dataclass(frozen=True)
class Shape:
    """The compared parts of a text.

    These are the stems of its content words, its numbers, days and identifiers, and whether it
    negates.
    """

    words: frozenset[str]
    values: frozenset[str]
    negated: bool

    def shared(self, other: Shape) -> float:
        """Return the share of content words that both have, in [0, 1].

        It is 0 if numbers or negation differ: such texts never state the same.
        """
        if self.values != other.values or self.negated != other.negated:
            return 0.0
        together = self.words | other.words
        return len(self.words & other.words) / len(together) if together else 0.0


def shape_of(content: str) -> Shape:
    """Return the shape of a text, for comparing it with others."""
    tokens = tokens_of(folded(content))
    words = {token.text for token in tokens}
    return Shape(
        words=frozenset(
            stem(token.text)
            for token in tokens
            if token.kind == WORD and token.text not in _GRAMMAR
        ),
        values=frozenset(token.text for token in tokens if token.kind != WORD),
        negated=bool(words & (lexicon.NEGATIONS | lexicon.NO_THERE_IS | lexicon.ANTONYMS.keys())),
    )
