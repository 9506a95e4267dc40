"""What pages and REST resources of other packages use of those of staff's review of memories."""

from memories_app.review.admin.history import memory_link
from memories_app.review.admin.memories import MemoryPages
from memories_app.review.admin.proposals import ProposalPages
from memories_app.review.admin.state_labels import VISIBILITIES, mark

__all__ = [
    "MemoryPages",
    "ProposalPages",
    "VISIBILITIES",
    "mark",
    "memory_link",
]
