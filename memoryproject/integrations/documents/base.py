"""What reading a document means to us: a file in, its text by sections out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
TEXT = "text/plain"
MARKDOWN = "text/markdown"

# Why a document can't be read: the codes of DocumentError, with the words for staff.
REASONS = {
    "unknown_type": "It is no PDF, Word (.docx), text or Markdown file.",
    "empty": "The file is empty.",
    "too_large": "The file is larger than the limit.",
    "too_many_pages": "The document has more pages than the limit.",
    "too_long": "The document holds more text than the limit.",
    "encrypted": "The document is protected by a password.",
    "no_text": "There is no text in it; it may be a scan.",
    "damaged": "The file is damaged or cut off.",
    "too_slow": "Reading the document took too long.",
    "too_much_memory": "Reading the document took too much memory.",
    "missing": "The uploaded file is gone. Upload it again.",
    "unavailable": "The document could not be read just now.",
}


@dataclass(frozen=True)
class DocumentLimits:
    """What a document may cost. ``seconds`` of time and of CPU, ``memory`` in bytes of
    address space, ``characters`` of text."""

    size: int = 20 * 1024 * 1024
    pages: int = 500
    seconds: float = 30.0
    memory: int = 1024**3
    characters: int = 2_000_000


@dataclass(frozen=True)
class Section:
    """A stretch of text; ``page`` from 1, None where the format has no pages."""

    text: str
    page: int | None = None


@dataclass(frozen=True)
class ExtractedText:
    """All text of a document in reading order. ``pages`` is None where the format has none;
    ``warnings`` tell in words what may be missing."""

    media_type: str
    sections: list[Section]
    pages: int | None = None
    title: str = ""
    warnings: list[str] = field(default_factory=list)


class DocumentError(Exception):
    """A document can't be read. ``code`` is one of REASONS. ``permanent``: the same file
    fails again."""

    def __init__(self, code: str, detail: str = "", *, permanent: bool = True) -> None:
        super().__init__(" ".join(part for part in (REASONS[code], detail) if part))
        self.code = code
        self.permanent = permanent


class TextExtractor(Protocol):
    """Reads the text of a file."""

    def extract(self, path: Path) -> ExtractedText:
        """The text of the file, whatever its name is. Raises DocumentError; OSError where
        the file can't be opened."""
        ...
