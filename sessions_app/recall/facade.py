"""Public face of recall: what other packages may use."""

from sessions_app.recall.hits import (
    CLIENT_NAME,
    CLIENTS_MEMORY,
    MAX_NEIGHBOUR_LENGTH,
    MEMORIES,
    MEMORY,
    MESSAGES,
    NEAREST,
    NEAREST_SIMILARITY,
    NEWER,
    SAID_BY,
    FactTimes,
    Hit,
    LeftOut,
    RecallResult,
    Viewer,
    hit_record,
    is_sure,
    name_in_label,
    number_for,
)
from sessions_app.recall.recall import recall
from sessions_app.recall.staff_search import (
    MAX_UNINDEXED_ROWS,
    RECENT,
    Snippet,
    memories_for_bound,
    memories_named,
    memories_shown,
    messages_searched,
    messages_with,
    messages_with_parts,
    newest_messages_found,
    snippet_of,
)
