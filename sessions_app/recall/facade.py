"""Public face of recall: what other packages may use."""

from sessions_app.recall.memory_queries import (
    memories_for_bound,
    memories_named,
    memories_shown,
)
from sessions_app.recall.neighbours import MAX_NEIGHBOUR_LENGTH
from sessions_app.recall.recall import MEMORIES, MESSAGES, Hit, RecallResult, Viewer, recall
from sessions_app.recall.staff_search import (
    MAX_UNINDEXED_ROWS,
    RECENT,
    Snippet,
    messages_with,
    messages_with_parts,
    newest_messages_found,
    snippet_of,
)

__all__ = [
    "Hit",
    "MAX_NEIGHBOUR_LENGTH",
    "MAX_UNINDEXED_ROWS",
    "MEMORIES",
    "MESSAGES",
    "RECENT",
    "RecallResult",
    "Snippet",
    "Viewer",
    "memories_for_bound",
    "memories_named",
    "memories_shown",
    "messages_with",
    "messages_with_parts",
    "newest_messages_found",
    "recall",
    "snippet_of",
]
