"""Public face of embedding models: what other packages may use."""

from memories_app.embedding_models.active_model import (
    model_begin,
    model_first,
    model_switch,
    model_verify,
)
from memories_app.embedding_models.vectors import (
    Uncovered,
    memories_embed,
    memories_lacking,
    memories_untried,
    vectors_delete,
)

__all__ = [
    "Uncovered",
    "memories_embed",
    "memories_lacking",
    "memories_untried",
    "model_begin",
    "model_first",
    "model_switch",
    "model_verify",
    "vectors_delete",
]
