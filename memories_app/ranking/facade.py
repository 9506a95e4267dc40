"""Public face of ranking texts. It imports numpy: import it where it is used."""

from memories_app.ranking.ranking import (
    HeldTexts,
    prepare_query,
    rank,
    search_words,
)
from memories_app.ranking.scope_cache import SCOPES, Columns, HeldScope, ids_of, vectors_from
from memories_app.ranking.searched_texts import (
    Question,
    RankedTexts,
    SearchedTexts,
    Vector,
    WordSearch,
)
from memories_app.ranking.stored_texts import StoredTexts

__all__ = [
    "Columns",
    "HeldScope",
    "HeldTexts",
    "Question",
    "RankedTexts",
    "SCOPES",
    "SearchedTexts",
    "StoredTexts",
    "Vector",
    "WordSearch",
    "ids_of",
    "prepare_query",
    "rank",
    "search_words",
    "vectors_from",
]
