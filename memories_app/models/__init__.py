"""Long-term memories, their vectors and their history."""

from memories_app.models.documents import (
    DocumentState,
    MemoryDocument,
    MemoryDocumentVersion,
    SourceDocument,
)
from memories_app.models.embeddings import EmbeddingModel, EmbeddingState, MemoryEmbedding
from memories_app.models.memories import (
    ALONE,
    Memory,
    MemoryRevision,
    MemorySource,
    MemoryStatus,
    RevisionReason,
    Tombstone,
    Visibility,
)
from memories_app.models.proposals import (
    DecisionReason,
    MergeProposal,
    ProposalKind,
    ProposalMemory,
    ProposalState,
)
