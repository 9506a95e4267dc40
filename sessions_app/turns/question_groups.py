"""Group questions by topic: by the meaning of their vectors, and by the words that they share."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoryproject.foundation.integrations.embedders.base import Calibration
from sessions_app.turns.questions import VARIANT, Question, QuestionGroup, folded_question

# Questions are about one topic if their vectors say so with this probability, or if so much of
# their words, by weight, is in the other one. Tried out on questions to shops in both languages.
MIN_PROBABILITY = 0.7
MIN_SHARED = 0.45
# As if so many more questions were there: of a few, no word is rare.
SMOOTHING = 20

Floats: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]


def questions_group(questions: Sequence[Question], calibration: Calibration) -> list[QuestionGroup]:
    """Return the groups: those that most people asked about first, then the newest.

    A group is a question with all that are alike to it and in no group yet; the question with most
    of them is next. calibration: of the model of the vectors.
    """
    by_key: dict[str, list[Question]] = defaultdict(list)
    for question in sorted(questions, key=lambda each: (each.asked_at, each.turn_id), reverse=True):
        by_key[folded_question(question.text)].append(question)
    wordings = list(by_key.values())
    alike = _alike([each[0] for each in wordings], calibration)
    stars = _stars(alike, np.array([len(each) for each in wordings], dtype=np.float32))
    groups = [_group(places, wordings) for places in stars]
    return sorted(groups, key=lambda group: (group.people, group.last), reverse=True)


def _stars(alike: Mask, times: Floats) -> list[list[int]]:
    """Return the groups as places, the central one first. times: how often each was asked."""
    left = np.ones(len(alike), dtype=bool)
    found = []
    # Of equals the one that was asked most often in these words.
    size = alike @ times + times / 1_000
    while left.any():
        centre = int(np.argmax(np.where(left, size, -1)))
        members = np.flatnonzero(alike[centre] & left).tolist()
        found.append([centre, *(place for place in members if place != centre)])
        left[members] = False
        size -= alike[:, members] @ times[members]
    return found


def _group(places: Sequence[int], wordings: Sequence[Sequence[Question]]) -> QuestionGroup:
    questions = [question for place in places for question in wordings[place]]
    questions.sort(key=lambda each: (each.asked_at, each.turn_id), reverse=True)
    return QuestionGroup(wordings[places[0]][0], tuple(questions))


def _alike(questions: Sequence[Question], calibration: Calibration) -> Mask:
    """Say of each two questions whether they are about one topic."""
    by_words = _shared_words(questions) >= MIN_SHARED
    alike: Mask = by_words | (_by_vectors(questions, calibration) >= MIN_PROBABILITY)
    np.fill_diagonal(alike, True)
    return alike


def _by_vectors(questions: Sequence[Question], calibration: Calibration) -> Floats:
    """Return the probabilities that two questions are about the same; 0 without vectors."""
    found = np.zeros((len(questions), len(questions)), dtype=np.float32)
    places = [place for place, each in enumerate(questions) if each.vector is not None]
    if places:
        vectors = np.array([questions[place].vector for place in places], dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        apart = calibration.slope * (vectors @ vectors.T - calibration.midpoint)
        found[np.ix_(places, places)] = 1 / (1 + np.exp(-apart))
    return found


def _shared_words(questions: Sequence[Question]) -> Floats:
    """Return the share of the words of each two questions that both have, rare ones counting more.

    It is the mean of both shares. A word is also found as a form of the other's words.
    """
    own, forms = defaultdict(list), defaultdict(list)
    for place, question in enumerate(questions):
        for word in question.words:
            own[word].append(place)
        variants = {term[1:] for term in question.terms if term.startswith(VARIANT)}
        for word in question.words | variants:
            forms[word].append(place)
    shared = np.zeros((len(questions), len(questions)), dtype=np.float32)
    whole = np.full(len(questions), 1e-6, dtype=np.float32)
    for word, places in own.items():
        weight = math.log(1 + (len(questions) + SMOOTHING) / (len(places) + 1))
        whole[places] += weight
        shared[np.ix_(places, forms[word])] += weight
    shares = shared / whole[:, None]
    return np.minimum((shares + shares.T) / 2, 1)
