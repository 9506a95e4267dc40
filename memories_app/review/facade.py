"""Public face of staff's review of memories: what other packages may use."""

from memories_app.review.consolidate import memories_propose_merges
from memories_app.review.pending import MAX_COUNTED, proposed_count

__all__ = [
    "MAX_COUNTED",
    "memories_propose_merges",
    "proposed_count",
]
