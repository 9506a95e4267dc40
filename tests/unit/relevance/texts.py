"""Texts and lines one by one, and the arrays of them that the scoring functions take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memoryproject.foundation.retrieval.message_features import (
    Lines,
    ends_as_question,
    speaker_hashes,
    tells_time,
)
from memoryproject.foundation.retrieval.reranking import CountedTexts, Floats
from memoryproject.foundation.text.terms import index_text


@dataclass(frozen=True)
class Evidence:
    """A text's index terms, its length in words, and its semantic relevance, None without one."""

    counts: Mapping[str, float]
    length: float
    semantic: float | None


def counted(texts: Sequence[Evidence]) -> CountedTexts:
    return CountedTexts.of([text.counts for text in texts], [text.length for text in texts])


def semantics(texts: Sequence[Evidence]) -> Floats:
    # None becomes NaN.
    return np.array([text.semantic for text in texts], dtype=float)


@dataclass(frozen=True)
class Line:
    """A line of a conversation. ``topic``: None without a vector."""

    text: str
    topic: float | None = -2.0
    segment: int = 0
    speaker: str = ""
    period_fit: float = 0.0


def lines_of(lines: Sequence[Line]) -> Lines:
    indexed = [index_text(line.text) for line in lines]
    return Lines(
        words=CountedTexts.of(
            [Counter(item.terms) for item in indexed], [item.length for item in indexed]
        ),
        topics=np.array([line.topic for line in lines], dtype=float),
        segments=np.array([line.segment for line in lines], np.int64),
        ask=np.array([ends_as_question(line.text) for line in lines], bool),
        tell_time=np.array([tells_time(line.text) for line in lines], bool),
        speakers=np.array([speaker_hashes(line.speaker) for line in lines], np.int64),
        period_fits=np.array([line.period_fit for line in lines], dtype=float),
    )
