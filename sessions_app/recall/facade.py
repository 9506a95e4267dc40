"""Public face of recall: what other packages may use."""

from sessions_app.recall.memory_queries import memories_for_bound, memories_named
from sessions_app.recall.neighbours import LONGEST_NEIGHBOUR
from sessions_app.recall.recall import MEMORIES, MESSAGES, Hit, RecallResult, Viewer, recall
from sessions_app.recall.staff_search import (
    NEWEST_BY_NO_INDEX,
    RECENT,
    Snippet,
    messages_with,
    said_in_part,
    said_newest,
    snippet_of,
)

__all__ = [
    "Hit",
    "LONGEST_NEIGHBOUR",
    "MEMORIES",
    "MESSAGES",
    "NEWEST_BY_NO_INDEX",
    "RECENT",
    "RecallResult",
    "Snippet",
    "Viewer",
    "memories_for_bound",
    "memories_named",
    "messages_with",
    "recall",
    "said_in_part",
    "said_newest",
    "snippet_of",
]
