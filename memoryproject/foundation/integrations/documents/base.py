"""The interface for reading documents: it takes a file and returns its text in sections."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from memoryproject.foundation.errors.stored_errors import ErrorText

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
TEXT = "text/plain"
MARKDOWN = "text/markdown"

# Reasons why a document can't be read: the codes of DocumentError, with the texts for staff.
REASONS = {
    "unknown_type": ErrorText("document_unknown_type"),
    "empty": ErrorText("document_empty"),
    "too_large": ErrorText("document_too_large"),
    "too_many_pages": ErrorText("document_too_many_pages"),
    "too_long": ErrorText("document_too_long"),
    "encrypted": ErrorText("document_encrypted"),
    "no_text": ErrorText("document_no_text"),
    "damaged": ErrorText("document_damaged"),
    "too_slow": ErrorText("document_too_slow"),
    "too_much_memory": ErrorText("document_too_much_memory"),
    "missing": ErrorText("document_missing"),
    "unavailable": ErrorText("document_unavailable"),
}


@dataclass(frozen=True)
class DocumentLimits:
    """The limits for reading one document.

    ``seconds``: elapsed time and CPU time; ``memory``: bytes of address space; ``characters``:
    length of the text.
    """

    size: int = 20 * 1024 * 1024
    pages: int = 500
    seconds: float = 30.0
    memory: int = 1024**3
    characters: int = 2_000_000


@dataclass(frozen=True)
class Section:
    """A section of text; ``page`` counts from 1, None where the format has no pages."""

    text: str
    page: int | None = None


@dataclass(frozen=True)
class ExtractedText:
    """All text of a document in reading order.

    ``pages`` is None where the format has none. ``warnings`` describe in words the text that may be
    missing.
    """

    media_type: str
    sections: list[Section]
    pages: int | None = None
    title: str = ""
    warnings: list[str] = field(default_factory=list)


class DocumentError(Exception):
    """A document can't be read.

    ``code`` is one of REASONS. ``permanent``: the same file will fail again.
    """

    def __init__(self, code: str, detail: str = "", *, permanent: bool = True) -> None:
        reason = REASONS[code]
        super().__init__(
            ErrorText("with_detail", reason=reason, detail=detail) if detail else reason
        )
        self.code = code
        self.detail = detail
        self.permanent = permanent


class TextExtractor(Protocol):
    """Reads the text of a file."""

    def extract(self, path: Path) -> ExtractedText:
        """Return the text of the file, whatever its name is.

        Raises DocumentError; OSError where the file can't be opened.
        """
        ...
