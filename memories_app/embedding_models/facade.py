"""Public face of embedding models: what other packages may use."""

from memories_app.embedding_models.vectors import (
    Uncovered,
    due_vectors_make,
    memories_embed,
    memories_lacking,
    memories_untried,
    model_begin,
    model_first,
    model_switch,
    model_verify,
    vector_due,
    vectors_delete,
    vectors_due,
    vectors_request,
    vectors_waiting,
)

__all__ = [
    "Uncovered",
    "due_vectors_make",
    "memories_embed",
    "memories_lacking",
    "memories_untried",
    "model_begin",
    "model_first",
    "model_switch",
    "model_verify",
    "vector_due",
    "vectors_delete",
    "vectors_due",
    "vectors_request",
    "vectors_waiting",
]
