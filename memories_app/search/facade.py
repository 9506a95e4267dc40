"""Public face of searching memories: what other packages may use."""

from memories_app.search.vector_search import (
    Vector,
    any_of,
    cast_of,
    index_drop,
    index_ensure,
    index_state,
    nearest_by_index,
    nearest_exactly,
    nearest_keys,
)
from memories_app.search.visibility import (
    EVERY_SCOPE,
    contents_then,
    is_current,
    memories_for_staff,
    memories_in_order,
    memories_visible,
    scope_of,
    scopes_visible,
    tags_in_use,
    values_in_use,
)

__all__ = [
    "EVERY_SCOPE",
    "Vector",
    "any_of",
    "cast_of",
    "contents_then",
    "index_drop",
    "index_ensure",
    "index_state",
    "is_current",
    "memories_for_staff",
    "memories_in_order",
    "memories_visible",
    "nearest_by_index",
    "nearest_exactly",
    "nearest_keys",
    "scope_of",
    "scopes_visible",
    "tags_in_use",
    "values_in_use",
]
