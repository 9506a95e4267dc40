"""Public face of documents: what other packages may use."""

from memories_app.documents.document_store import (
    INCOMING,
    DocumentBusyError,
    IncomingFile,
    Received,
    document_file,
    document_forget,
    document_receive,
    documents_abandoned,
    file_remove,
    leftovers_remove,
    message_documents_forget,
    shown_name,
)
from memories_app.documents.read_document import document_store

__all__ = [
    "INCOMING",
    "DocumentBusyError",
    "IncomingFile",
    "Received",
    "document_file",
    "document_forget",
    "document_receive",
    "document_store",
    "documents_abandoned",
    "file_remove",
    "leftovers_remove",
    "message_documents_forget",
    "shown_name",
]
