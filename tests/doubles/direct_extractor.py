"""Read documents without a sandbox."""

from __future__ import annotations

from pathlib import Path

from memoryproject.foundation.integrations.documents.read_document import read_document
from memoryproject.foundation.integrations.documents.sniffing import (
    DocumentError,
    DocumentLimits,
    ExtractedText,
)


class DirectExtractor:
    """A TextExtractor without a sandbox."""

    def __init__(self, limits: DocumentLimits | None = None) -> None:
        self.limits = limits or DocumentLimits()

    def extract(self, path: Path) -> ExtractedText:
        """See TextExtractor.extract. A file that makes its library fail counts as damaged."""
        content = path.read_bytes()
        try:
            return read_document(content, self.limits)
        except DocumentError:
            raise
        except Exception as error:
            raise DocumentError("damaged") from error
