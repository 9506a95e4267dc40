"""Find the passage of a long text that fits a question best. Pure."""

from __future__ import annotations

from memoryproject.foundation.retrieval.query import QueryTerm, informative_terms, query_terms
from memoryproject.foundation.text.characters import (
    characters_within,
    cut_to_tokens,
    estimate_tokens,
    fold,
)
from memoryproject.foundation.text.chunks import cut_text

MARK = "…"
# A shorter part of a word is in too many others.
MIN_FORM_LENGTH = 3


def best_passage(text: str, query: str, *, tokens: int) -> str:
    """Return ``text`` in at most ``tokens`` tokens: the passage with most words of the query.

    Marks stand for what is left out before and after it. A passage ends at the end of a sentence
    if possible. The first one is returned where none has a word of the query.
    """
    if estimate_tokens(text) <= tokens:
        return text
    # The beginning may be in another script than the rest, so the result is measured again.
    longest = max(characters_within(text, tokens - 2), 1)
    passages = cut_text(text, target=max(longest * 3 // 4, 1), most=longest)
    if not passages:
        return MARK
    forms = [_forms(term) for term in informative_terms(query_terms(query))]
    best = max(passages, key=lambda passage: _shared(passage.text, forms))
    before = f"{MARK} " if best.start > passages[0].start else ""
    after = f" {MARK}" if best.end < passages[-1].end else ""
    return cut_to_tokens(f"{before}{best.text}{after}", tokens)


def _shared(passage: str, forms: list[set[str]]) -> int:
    """Return how many words of the query are in the passage."""
    folded = fold(passage)
    return sum(any(form in folded for form in each) for each in forms)


def _forms(term: QueryTerm) -> set[str]:
    """Return the beginnings of the words that count as this one."""
    written = {form.lstrip("~") for form in term.forms if form[0] != "@"}
    # The stem of "delivery" is "deliveri".
    stems = {form[:-1] if form.endswith("i") else form for form in written}
    return {form for form in stems if len(form) >= MIN_FORM_LENGTH} or stems
