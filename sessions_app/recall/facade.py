"""Public face of recall: what other packages may use."""

from sessions_app.recall.fact_times import NEWER, SAID_BY, FactTimes
from sessions_app.recall.hits import (
    MAX_NEIGHBOUR_LENGTH,
    MEMORIES,
    MESSAGES,
    Hit,
    LeftOut,
    RecallResult,
    Viewer,
)
from sessions_app.recall.memory_labels import (
    CLIENT_NAME,
    CLIENTS_MEMORY,
    MEMORY,
    name_in_label,
)
from sessions_app.recall.memory_queries import (
    ShownMemory,
    memories_for_bound,
    memories_named,
    memories_shown,
)
from sessions_app.recall.recall import hit_record, recall
from sessions_app.recall.staff_search import (
    MAX_UNINDEXED_ROWS,
    RECENT,
    Snippet,
    messages_searched,
    messages_with,
    messages_with_parts,
    newest_messages_found,
    snippet_of,
)

__all__ = [
    "CLIENTS_MEMORY",
    "CLIENT_NAME",
    "FactTimes",
    "Hit",
    "LeftOut",
    "MAX_NEIGHBOUR_LENGTH",
    "MAX_UNINDEXED_ROWS",
    "MEMORIES",
    "MEMORY",
    "MESSAGES",
    "NEWER",
    "RECENT",
    "RecallResult",
    "SAID_BY",
    "ShownMemory",
    "Snippet",
    "Viewer",
    "hit_record",
    "memories_for_bound",
    "memories_named",
    "memories_shown",
    "messages_searched",
    "messages_with",
    "messages_with_parts",
    "name_in_label",
    "newest_messages_found",
    "recall",
    "snippet_of",
]
