"""Search the messages of many sessions and chats, by their words, their meaning, or both."""

from django.db.models import Q

from memories_app import ranking
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.retrieval.query import is_informative
from memoryproject.foundation.retrieval.subqueries import query_parts
from sessions_app.models import MessageEmbedding
from sessions_app.recall.hits import MEANING, WORDS, MessageHit
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
    candidates, sampled = ranking.joined([candidates])
    scores = ranking.rank(question, candidates, sampled)
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
