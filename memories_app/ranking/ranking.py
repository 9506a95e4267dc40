"""Rank candidates against a question: memories here, and the seeds of messages."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memories_app.ranking.candidates import Candidates, Vector
from memoryproject.foundation.integrations.embedders.base import (
    Calibration,
    Embedder,
    EmbedderError,
)
from memoryproject.foundation.integrations.embedders.coverage import embed_covered
from memoryproject.foundation.retrieval.query import QueryTerm
from memoryproject.foundation.retrieval.relevance import (
    PART_WORTH,
    Floats,
    chances,
    weigh_words,
)
from memoryproject.foundation.retrieval.subqueries import QueryPart

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Question:
    """A message as it is searched for: its parts, each with its vector, or None.

    ``topics``: the text of each part that was embedded.
    """

    parts: Sequence[QueryPart]
    topics: Sequence[str]
    vectors: Sequence[Vector | None]
    model: str
    calibration: Calibration

    @property
    def terms(self) -> list[QueryTerm]:
        """Return the distinct words of all parts."""
        return distinct_terms(self.parts)


def distinct_terms(parts: Sequence[QueryPart]) -> list[QueryTerm]:
    """Return the distinct words of all parts of a message."""
    return list({term.forms: term for part in parts for term in part.terms}.values())


def prepare_question(
    parts: Sequence[QueryPart], topics: Sequence[str], embedder: Embedder
) -> tuple[Question, bool]:
    """Return the question with its vectors, and whether the embedder succeeded.

    The embedder is called once, with distinct texts.
    """
    distinct = list(dict.fromkeys(topics))
    made: dict[str, Vector | None] = {}
    worked = True
    try:
        made = dict(zip(distinct, embed_covered(embedder, distinct, queries=True), strict=True))
    except EmbedderError as error:
        logger.error("The query could not be embedded, words decide alone: %s", error)
        worked = False
    vectors = [made.get(topic) for topic in topics]
    return Question(parts, topics, vectors, embedder.model_id, embedder.calibration), worked


def rank(question: Question, candidates: Candidates, sampled: NDArray[np.bool_]) -> Floats:
    """Return the relevance of each candidate, in [0, 1]: to the part that it answers best.

    Copies of a text are compared with the others once, so that they don't silence each other.
    sampled: the candidates that are a sample of the scope.
    """
    scores = np.zeros(len(candidates.ids))
    if not len(scores):
        return scores
    sample = [candidates.terms[row] for row in np.flatnonzero(sampled).tolist()]
    first, copy_of = _copies(candidates.contents)
    for place, part in enumerate(question.parts):
        words = weigh_words(part.terms, sample)
        cosines = question.calibration.scaled(candidates.cosines[:, place])
        held = words.held_by(candidates.terms)
        own = chances(cosines[first], held[first], words)[copy_of]
        worth = PART_WORTH if place else 1.0
        scores = np.maximum(scores, worth * own)
    return scores


def _copies(contents: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row of each distinct text, and for each row the place of its text there."""
    texts: dict[str, int] = {}
    first: list[int] = []
    places = []
    for row, content in enumerate(contents):
        # Comparing words would take longer than all else; copies are spelt alike.
        key = content.casefold().rstrip(" .!")
        if key not in texts:
            texts[key] = len(first)
            first.append(row)
        places.append(texts[key])
    return np.array(first, np.int64), np.array(places, np.int64)
