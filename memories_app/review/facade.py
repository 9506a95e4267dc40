"""Public face of staff's review of memories: what other packages may use."""

from memories_app.review.consolidate import memories_propose_merges

__all__ = [
    "memories_propose_merges",
]
