"""The terms by which a memory is found: the words of its text and of its tags."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memoryproject.foundation.text.terms import MAX_TERMS, IndexedText, index_text


def memory_terms(content: str, tags: Iterable[str]) -> IndexedText:
    """Return the terms of a memory.

    A tag adds the words that the text doesn't have, and nothing to its length: a tagged memory is
    not judged as a longer one.
    """
    indexed = index_text(content)
    of_tags = (term for tag in tags for term in index_text(tag).terms)
    added = dict.fromkeys(term for term in of_tags)
    known = set(indexed.terms)
    terms = [*indexed.terms, *(term for term in added if term not in known)]
    return replace(indexed, terms=terms[:MAX_TERMS])
