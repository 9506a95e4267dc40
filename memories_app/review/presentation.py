"""Functions of the review of memories for pages and REST resources of other packages."""

from memories_app.review.admin.filters import day_of
from memories_app.review.admin.memory_history import memory_link
from memories_app.review.admin.memory_pages import MemoryPages
from memories_app.review.admin.proposal_pages import ProposalPages
from memories_app.review.admin.state_labels import VISIBILITIES, mark, type_label

__all__ = [
    "MemoryPages",
    "ProposalPages",
    "VISIBILITIES",
    "day_of",
    "mark",
    "memory_link",
    "type_label",
]
