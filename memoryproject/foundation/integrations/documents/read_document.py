"""Read a document's bytes in this process: the code that runs inside the sandbox."""

from __future__ import annotations

import codecs
import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from charset_normalizer import from_bytes
from docx import Document
from docx.opc.exceptions import OpcError
from docx.oxml.ns import qn
from lxml import etree

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.documents.pdf import read_pdf
from memoryproject.foundation.integrations.documents.sniffing import (
    DOCX,
    PDF,
    TEXT,
    DocumentError,
    DocumentLimits,
    ExtractedText,
    Section,
    looks_utf16,
    sniff,
)

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
    found = _READERS.get(sniff(content), read_plain)(content, limits)
    sections = [Section(_storable(each.text), each.page) for each in found.sections]
    sections = [each for each in sections if each.text.strip()]
    if not sections:
        raise DocumentError("no_text")
    if sum(len(each.text) for each in sections) > limits.characters:
        raise DocumentError("too_long")
    title = " ".join(_storable(found.title).split())[:_MAX_TITLE_LENGTH]
    return replace(found, sections=sections, title=title)


def _storable(text: str) -> str:
    text = _NEW_LINE.sub("\n", text.replace("\x00", ""))
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


# Read text files in any encoding.


# The longer byte order mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 65_536
# Hebrew letters of Windows-1255 and ISO-8859-8. In Western encodings such bytes occur singly
# between ASCII letters; in Cyrillic encodings they occur together with other letters.
_HEBREW_WORD = re.compile(rb"[\xe0-\xfa]{2,}")
_OTHER_LETTER = re.compile(rb"[\xc0-\xdf\xfb-\xff]")
_GUESSED_AMONG = [
    *("cp1252", "cp1255", "cp1251", "cp1256", "cp1253", "cp1250", "cp1254", "koi8_r"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
]


def read_plain(content: bytes, limits: DocumentLimits) -> ExtractedText:
    """Return a text file as one section. Raises DocumentError."""
    text, warning = decode(content)
    return ExtractedText(
        media_type=TEXT, sections=[Section(text)], warnings=[warning] if warning else []
    )


def decode(content: bytes) -> tuple[str, str]:
    """Return the text, and a warning if its encoding was guessed. Raises DocumentError."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _decoded(content, encoding), ""
    unmarked = looks_utf16(content[:_SAMPLE])
    if unmarked:
        return _decoded(content, unmarked), ""
    try:
        return content.decode("utf-8"), ""
    except UnicodeDecodeError:
        encoding = _guess(content)
    return content.decode(encoding, errors="replace"), ErrorText(
        "encoding_guessed", encoding=encoding
    )


def _decoded(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise DocumentError(
            "damaged", ErrorText("text_wrong_encoding", encoding=encoding)
        ) from error


def _guess(content: bytes) -> str:
    """Return the most likely encoding of text that isn't UTF-8."""
    if _looks_hebrew(content[:_SAMPLE]):
        return "cp1255"
    found = from_bytes(content[:_SAMPLE], cp_isolation=_GUESSED_AMONG)
    best = found.best()
    if best is None:
        return "cp1252"
    # Related encodings such as Western and Central European often fit equally well.
    equal = {each.encoding for each in found if each.chaos <= best.chaos}
    return next((name for name in _GUESSED_AMONG if name in equal), best.encoding)


def _looks_hebrew(sample: bytes) -> bool:
    high = sum(byte >= 0xC0 for byte in sample)
    in_words = sum(map(len, _HEBREW_WORD.findall(sample)))
    others = len(_OTHER_LETTER.findall(sample))
    return high > 0 and in_words > 0.8 * high and others * 20 <= high


# Read Word files with python-docx.

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


_READERS = {PDF: read_pdf, DOCX: read_docx}
