"""Read PDF files with pypdf."""

from __future__ import annotations

import io
import logging

from pypdf import PasswordType, PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError, PyPdfError

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.documents.base import (
    PDF,
    DocumentError,
    DocumentLimits,
    ExtractedText,
    Section,
)
from memoryproject.foundation.integrations.documents.rtl_lines import in_reading_order

# pypdf logs its repairs there, which helps nobody here.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def read_pdf(content: bytes, limits: DocumentLimits) -> ExtractedText:
    """Return the text of each page. Raises DocumentError."""
    try:
        reader = PdfReader(io.BytesIO(content))
        _open(reader)
        count = len(reader.pages)
        if count > limits.pages:
            raise DocumentError(
                "too_many_pages", ErrorText("pdf_page_limit", count=count, most=limits.pages)
            )
        return _read(reader, count, limits)
    except (FileNotDecryptedError, DependencyError) as error:
        raise DocumentError("encrypted") from error
    except LimitReachedError as error:
        raise DocumentError("too_much_memory") from error
    except PyPdfError as error:
        raise DocumentError("damaged") from error


def _open(reader: PdfReader) -> None:
    """Open an encrypted document with the empty password.

    Many documents are encrypted this way against printing or changes, and every reader opens them.
    """
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise DocumentError("encrypted")


def _read(reader: PdfReader, count: int, limits: DocumentLimits) -> ExtractedText:
    sections = []
    characters = 0
    for number, page in enumerate(reader.pages, start=1):
        text = in_reading_order(page.extract_text()).strip()
        characters += len(text)
        if characters > limits.characters:
            raise DocumentError("too_long")
        if text.strip():
            sections.append(Section(text, page=number))
    warnings: list[str] = []
    if sections and len(sections) < count:
        warnings.append(ErrorText("pages_without_text", lacking=count - len(sections), count=count))
    return ExtractedText(PDF, sections, pages=count, title=_title(reader), warnings=warnings)


def _title(reader: PdfReader) -> str:
    try:
        found = reader.metadata.title if reader.metadata else None
    except (PyPdfError, ValueError, TypeError, AttributeError):
        return ""
    return str(found or "")
