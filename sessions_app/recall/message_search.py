"""Search the messages of many sessions and chats, by their words, their meaning, or both.

Find the people whom a question names, and rank what they said.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeAlias
from uuid import UUID

import numpy as np
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL

from memories_app import ranking
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.retrieval import relevance
from memoryproject.foundation.retrieval.query import QueryTerm, is_informative, query_terms
from memoryproject.foundation.retrieval.subqueries import query_parts
from memoryproject.foundation.text.tokenizer import Kind
from sessions_app.models import Chat, MessageEmbedding
from sessions_app.recall.hits import BEHIND, MEANING, WORDS, MessageHit
from sessions_app.recall.message_ranking import NEWEST, messages_visible


def search(
    query: str, within: Q, embedder: Embedder, *, by: str, least: float
) -> tuple[list[MessageHit], bool]:
    """Return the messages, best first, and whether no vector could be made: see the facade."""
    parts = query_parts(query)
    terms = ranking.distinct_terms(parts)
    texts = ranking.Texts(messages_visible(within), NEWEST, MessageEmbedding, "message")
    (sample,) = ranking.samples_read([texts], terms)
    if by == WORDS:
        none = [None] * len(parts)
        question = ranking.Question(parts, none, embedder.model_id, embedder.calibration)
        worked = True
    else:
        question, worked = ranking.prepare_question(parts, [part.text for part in parts], embedder)
    sought = [] if by == MEANING else terms
    candidates = ranking.candidates_read(
        texts, sample, sought, question.vectors, model=question.model
    )
    candidates, scores = ranking.rank_sets(question, [candidates])
    near = [None if cosine != cosine else float(cosine) for cosine in candidates.cosines[:, 0]]
    telling = {form for term in terms if is_informative(term) for form in term.forms}
    rows = zip(candidates.ids, candidates.terms, scores, near, strict=True)
    found = [
        MessageHit(key, round(float(score), 4), cosine)
        for key, held, score, cosine in rows
        if score >= least
        and (by != WORDS or not telling.isdisjoint(held))
        and (by != MEANING or cosine is not None)
    ]
    return sorted(found, key=lambda hit: (-hit.score, hit.id)), not worked


# The people whom the owner, or staff, ask about by name: "I" in what they said is they.

# The chats of people who are named, with the words that name each.
Named: TypeAlias = Mapping[UUID, frozenset[str]]
MAX_NAMED = 5
_WORD = re.compile(r"\w{2,}")
# Of a long question the first words.
MAX_WORDS = 64
_NAMING = (Kind.NAME, Kind.PLAIN)
# Of the names that hold a part of a word of the question, so many are compared with it.
MAX_NAMES = 1_000
_NAMES = "client_name || chr(10) || staff_name"
# As the index of parts of names has it: see the first migration.
_PARTS = (
    f"sessions_app_parts({_NAMES} || chr(10) || whatsapp_chat || chr(10) || client_phone, 1, 3)"
)
_HOLDS_PART = f"({_PARTS} && %s AND upper({_NAMES}) LIKE ANY(%s))"


def people_named(text: str, terms: Sequence[QueryTerm], *, but: UUID | None) -> Named:
    """Return the chats of the people that a question names, with the words that name each.

    ``but``: the chat of who asks.

    Two words of a name that stand together count, or one that is written as a name. Of two people
    with a word in common only who is named with more words is meant.
    """
    telling = {place: term for place, term in enumerate(terms) if term.kind in _NAMING}
    kinds = [term.kind for term in telling.values()]
    if len(kinds) < 2 and Kind.NAME not in kinds:
        return {}
    words = {form.strip("~") for term in telling.values() for form in term.forms if form[0] != "@"}
    # The last letter may be another one: endings, accents, and final letters in Hebrew.
    sought = {
        word.upper()[: max(len(word) - 1, 2)] for word in {*words, *_WORD.findall(text)[:MAX_WORDS]}
    }
    given = [[part[:3] for part in sought], [f"%{part.replace('_', '')}%" for part in sought]]
    holds = RawSQL(_HOLDS_PART, given, BooleanField())  # noqa: S611 constants only
    chats = Chat.objects.filter(holds, is_group=False).exclude(pk=but)
    rows = chats.values_list("pk", "client_name", "staff_name")[:MAX_NAMES]
    found = {key: max((_named(telling, name) for name in names), key=len) for key, *names in rows}
    meant = {
        key: words
        for key, words in found.items()
        if words and not any(words < others for others in found.values())
    }
    return dict(islice(meant.items(), MAX_NAMED))


def _named(terms: Mapping[int, QueryTerm], name: str) -> frozenset[str]:
    """Return the words of a question that name this person, none where they are too few."""
    found = set[int]()
    for word in query_terms(name):
        forms = {form for form in word.forms if form[0] != "@" and word.kind in _NAMING}
        found |= {place for place, term in terms.items() if not forms.isdisjoint(term.forms)}
    is_named = any(place + 1 in found or terms[place].kind is Kind.NAME for place in found)
    return frozenset(terms[place].word for place in found if is_named)


def rank_named(
    question: ranking.Question, found: Sequence[ranking.Candidates], named: Named, least: float
) -> tuple[ranking.Candidates, relevance.Floats]:
    """Return the candidates as one, and their scores.

    ``question``: its parts; then the same without the names, as the people would ask it. ``found``:
    the last ones are those of these people. ``least``: the score of a text that answers.
    """
    size, others = len(question.parts) // 2, len(found) - len(named)
    names = [question.forms_of(words) for words in named.values()]
    theirs = [each.about(name) for each, name in zip(found[others:], names, strict=True)]
    together = [*found[:others], *theirs]
    candidates, scores = ranking.rank_sets(question.of_parts(slice(size)), together)
    own = [replace(each, cosines=each.cosines[:, size:]) for each in theirs]
    _, as_they = ranking.rank_sets(question.of_parts(slice(size, None)), own)
    first = len(scores) - len(as_they)
    scores[first:] = np.maximum(scores[first:], as_they)
    best = scores[first:].max(initial=0.0)
    for row in range(first if best >= least else 0):
        # What doesn't have the whole name comes after what they said.
        if not any(candidates.holds_all(row, name) for name in names):
            scores[row] = min(scores[row], best - BEHIND)
    return candidates, scores
