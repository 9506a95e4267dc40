"""Read a document's bytes in this process: the code that runs inside the sandbox."""

from __future__ import annotations

import re
from dataclasses import replace

from memoryproject.foundation.integrations.documents.base import (
    DOCX,
    PDF,
    DocumentError,
    DocumentLimits,
    ExtractedText,
    Section,
)
from memoryproject.foundation.integrations.documents.docx import read_docx
from memoryproject.foundation.integrations.documents.pdf import read_pdf
from memoryproject.foundation.integrations.documents.plain import read_plain
from memoryproject.foundation.integrations.documents.sniffing import sniff

_MAX_TITLE_LENGTH = 255
# Characters that no database stores, and the line and page breaks of other systems.
_NEW_LINE = re.compile("\r\n?|\f|\v|\u2028")
_UNSTORABLE = re.compile("[\ud800-\udfff]")


def read_document(content: bytes, limits: DocumentLimits) -> ExtractedText:
    """Return the text of a document in a form that can be stored.

    Raises DocumentError; MemoryError, RecursionError and any exception of a library on a broken
    file.
    """
    if len(content) > limits.size:
        raise DocumentError("too_large")
    found = _READERS.get(sniff(content), _read_plain)(content, limits)
    sections = [Section(_storable(each.text), each.page) for each in found.sections]
    sections = [each for each in sections if each.text.strip()]
    if not sections:
        raise DocumentError("no_text")
    if sum(len(each.text) for each in sections) > limits.characters:
        raise DocumentError("too_long")
    title = " ".join(_storable(found.title).split())[:_MAX_TITLE_LENGTH]
    return replace(found, sections=sections, title=title)


def _read_plain(content: bytes, limits: DocumentLimits) -> ExtractedText:
    return read_plain(content)


_READERS = {PDF: read_pdf, DOCX: read_docx}


def _storable(text: str) -> str:
    text = _NEW_LINE.sub("\n", text.replace("\x00", ""))
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
