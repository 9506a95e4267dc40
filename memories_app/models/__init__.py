"""Long-term memories, their vectors and their history."""

from memories_app.models.documents import DocumentState, SourceDocument
from memories_app.models.embeddings import EmbeddingModel, EmbeddingState, MemoryEmbedding
from memories_app.models.history import MemoryRevision, MemorySource, RevisionReason, Tombstone
from memories_app.models.memories import Memory, MemoryStatus, Visibility
from memories_app.models.memory_documents import MemoryDocument, MemoryDocumentVersion
from memories_app.models.proposals import (
    DecisionReason,
    MergeProposal,
    ProposalKind,
    ProposalMemory,
    ProposalState,
)

__all__ = [
    "DecisionReason",
    "DocumentState",
    "EmbeddingModel",
    "EmbeddingState",
    "Memory",
    "MemoryDocument",
    "MemoryDocumentVersion",
    "MemoryEmbedding",
    "MemoryRevision",
    "MemoryStatus",
    "MemorySource",
    "MergeProposal",
    "ProposalKind",
    "ProposalMemory",
    "ProposalState",
    "RevisionReason",
    "SourceDocument",
    "Tombstone",
    "Visibility",
]
