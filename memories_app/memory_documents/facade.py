"""Public face of memory documents: what other packages may use."""

from memories_app.memory_documents.database.lifecycle import documents_tend

__all__ = [
    "documents_tend",
]
