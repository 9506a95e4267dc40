"""Public face of the rules about facts: what other packages may use."""

from memories_app.facts.facts import (
    Likeness,
    Verdict,
    fact_key,
    kept_subject,
    likeness_of,
    speakers_in,
    subject_keys,
    verdict_on,
)
from memories_app.facts.searched_terms import memory_terms
from memories_app.facts.text_diff import SAME, Piece, Shape, shape_of, word_diff
from memories_app.facts.validation import (
    FACT_TIMES,
    MAX_CONTENT,
    MAX_LABEL,
    MAX_METADATA_BYTES,
    MAX_TAGS,
    NewMemory,
    label_problems,
    metadata_problems,
    problems_of,
    storable_metadata,
    tag_problems,
    time_problems,
    visibility_problems,
)
from memories_app.facts.validity import Validity, validity_of

__all__ = [
    "SAME",
    "FACT_TIMES",
    "Likeness",
    "MAX_CONTENT",
    "MAX_LABEL",
    "MAX_METADATA_BYTES",
    "MAX_TAGS",
    "NewMemory",
    "Piece",
    "Shape",
    "fact_key",
    "kept_subject",
    "label_problems",
    "likeness_of",
    "memory_terms",
    "metadata_problems",
    "problems_of",
    "shape_of",
    "speakers_in",
    "storable_metadata",
    "subject_keys",
    "validity_of",
    "Validity",
    "Verdict",
    "verdict_on",
    "tag_problems",
    "time_problems",
    "visibility_problems",
    "word_diff",
]
