"""Read the folder and the size limit of documents from the settings."""

from pathlib import Path

from django.conf import settings

from memoryproject.foundation.integrations.documents.sniffing import DocumentLimits


def build_document_limits() -> DocumentLimits:
    return DocumentLimits(
        size=settings.DOCUMENT_MAX_MB * 1024 * 1024, pages=settings.DOCUMENT_MAX_PAGES
    )


def documents_folder() -> Path:
    """Return the folder where documents wait until they are read."""
    return Path(settings.DATA_DIR) / "documents"
