"""Public face of ranking texts. It imports numpy: import it where it is used."""

from memories_app.ranking.candidates import (
    Candidates,
    Sample,
    Texts,
    Vector,
    candidates_read,
    held_terms,
    joined,
    sample_read,
    vector_literal,
)
from memories_app.ranking.ranking import (
    Question,
    distinct_terms,
    prepare_question,
    rank,
)

__all__ = [
    "Candidates",
    "Question",
    "Sample",
    "Texts",
    "Vector",
    "candidates_read",
    "distinct_terms",
    "held_terms",
    "joined",
    "prepare_question",
    "rank",
    "sample_read",
    "vector_literal",
]
