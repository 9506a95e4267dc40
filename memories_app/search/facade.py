"""Public face of searching memories: what other packages may use."""

from memories_app.search.lexical_search import any_of, known_terms
from memories_app.search.ranking import (
    NOTHING_FOUND,
    Question,
    Ranked,
    WordSearch,
    cosines_of,
    prepare_query,
    rank,
    search_words,
)
from memories_app.search.vector_search import (
    Vector,
    cast_of,
    index_drop,
    index_ensure,
    index_state,
    nearest_by_index,
    nearest_exactly,
    nearest_keys,
)
from memories_app.search.visibility import (
    is_current,
    memories_for_staff,
    memories_list,
    memories_visible,
    memories_with_words,
    scope_of,
    tags_in_use,
    values_in_use,
)

__all__ = [
    "NOTHING_FOUND",
    "Question",
    "Ranked",
    "Vector",
    "WordSearch",
    "any_of",
    "cast_of",
    "cosines_of",
    "index_drop",
    "index_ensure",
    "index_state",
    "is_current",
    "known_terms",
    "memories_for_staff",
    "memories_list",
    "memories_visible",
    "memories_with_words",
    "nearest_by_index",
    "nearest_exactly",
    "nearest_keys",
    "prepare_query",
    "rank",
    "scope_of",
    "search_words",
    "tags_in_use",
    "values_in_use",
]
