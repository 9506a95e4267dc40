"""Public face of documents: what other packages may use."""

from memories_app.documents.claims import DocumentBusyError
from memories_app.documents.document_files import (
    INCOMING,
    IncomingFile,
    document_file,
    file_remove,
)
from memories_app.documents.document_store import (
    Received,
    document_forget,
    document_receive,
    message_documents_forget,
    shown_name,
)
from memories_app.documents.read_document import document_store
from memories_app.documents.sweep import documents_abandoned, leftovers_remove

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
