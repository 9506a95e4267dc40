"""Read Word files with python-docx."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from docx import Document
from docx.opc.exceptions import OpcError
from docx.oxml.ns import qn
from lxml import etree

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.documents.sniffing import (
    DOCX,
    DocumentError,
    DocumentLimits,
    ExtractedText,
    Section,
)

# A document of 500 pages full of pictures has fewer parts.
MAX_PARTS = 5_000
MAX_UNPACKED = 300 * 1024 * 1024
MAX_XML = 100 * 1024 * 1024

_PARAGRAPH, _TABLE, _ROW, _CELL = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
_TEXT, _TAB = qn("w:t"), qn("w:tab")
_BREAKS = {qn("w:br"), qn("w:cr")}
# The older duplicate of a text box, deleted text, and the code of a field.
_LEFT_OUT = {
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
    qn("w:del"),
    qn("w:moveFrom"),
    qn("w:instrText"),
    qn("w:pPr"),
    qn("w:rPr"),
}


def read_docx(content: bytes, limits: DocumentLimits) -> ExtractedText:
    """Return the text of the body, with tables row by row. Raises DocumentError."""
    _check_archive(content)
    try:
        document = Document(io.BytesIO(content))
        body = document.element.body
        if body.getroottree().docinfo.internalDTD is not None:
            raise DocumentError("damaged", ErrorText("docx_entities"))
        text = _within("\n".join(_blocks(body)), limits)
        title = document.core_properties.title
    except (OpcError, etree.LxmlError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise DocumentError("damaged") from error
    return ExtractedText(DOCX, [Section(text)], title=title or "")


def _check_archive(content: bytes) -> None:
    """Refuse zip bombs by the sizes that the archive declares; no more than that is unpacked."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = archive.infolist()
    if any(part.flag_bits & 0x1 for part in parts):
        raise DocumentError("encrypted")
    xml = sum(part.file_size for part in parts if part.filename.endswith((".xml", ".rels")))
    unpacked = sum(part.file_size for part in parts)
    if len(parts) > MAX_PARTS or unpacked > MAX_UNPACKED or xml > MAX_XML:
        raise DocumentError("too_much_memory", ErrorText("docx_unpacks_too_large"))


def _within(text: str, limits: DocumentLimits) -> str:
    if len(text) > limits.characters:
        raise DocumentError("too_long")
    return text


def _blocks(element: Any) -> Iterator[str]:
    """Yield paragraphs and table rows in their order, with an empty line between paragraphs."""
    for child in element:
        if child.tag == _PARAGRAPH:
            text = _paragraph(child)
            yield f"{text}\n" if text.strip() else ""
        elif child.tag == _TABLE:
            yield from (_row(row) for row in child.iter(_ROW))
            yield ""
        elif isinstance(child.tag, str) and child.tag not in _LEFT_OUT:
            yield from _blocks(child)


def _row(row: Any) -> str:
    cells = (" ".join(" ".join(_blocks(cell)).split()) for cell in row.iter(_CELL))
    return " | ".join(cell for cell in cells if cell)


def _paragraph(paragraph: Any) -> str:
    return "".join(_runs(paragraph)).strip("\n")


def _runs(element: Any) -> Iterator[str]:
    """Yield the text of a paragraph; text boxes in it are on separate lines."""
    for child in element:
        if child.tag == _TEXT:
            yield child.text or ""
        elif child.tag == _TAB:
            yield "\t"
        elif child.tag in _BREAKS:
            yield "\n"
        elif child.tag == _PARAGRAPH:
            yield f"\n{_paragraph(child)}\n"
        elif isinstance(child.tag, str) and child.tag not in _LEFT_OUT:
            yield from _runs(child)
