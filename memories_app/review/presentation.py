"""Functions of the review of memories for pages and REST resources of other packages."""

from memories_app.review.decisions import WAITING_AT_ONCE
from memories_app.review.filters import VISIBILITIES, day_of, mark, type_label
from memories_app.review.memory_history import memory_link
from memories_app.review.memory_pages import MemoryPages
from memories_app.review.memory_rows import call_for_each
from memories_app.review.proposal_pages import ProposalPages, proposals_waiting
