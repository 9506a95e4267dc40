"""Public face of memory documents: what other packages may use."""

from memories_app.memory_documents.document_rows import (
    document_erase,
    document_lock,
    document_rows_left,
    document_texts,
    documents_tend,
)

__all__ = [
    "document_erase",
    "document_lock",
    "document_rows_left",
    "document_texts",
    "documents_tend",
]
