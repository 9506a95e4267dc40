"""Public face of memory documents: what other packages may use."""

from memories_app.memory_documents.database.lifecycle import documents_tend
from memories_app.memory_documents.database.remove import (
    document_erase,
    document_lock,
    document_rows_left,
    document_texts,
)

__all__ = [
    "document_erase",
    "document_lock",
    "document_rows_left",
    "document_texts",
    "documents_tend",
]
