"""Read a document's bytes in this process: the code that runs inside the sandbox."""

import io
import logging
import re
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from docx import Document
from docx.opc.exceptions import OpcError
from docx.oxml.ns import qn
from lxml import etree
from pypdf import PasswordType, PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError, PyPdfError

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.documents import sniffing

_MAX_TITLE_LENGTH = 255
# Characters that no database stores, and the line and page breaks of other systems.
_NEW_LINE = re.compile("\r\n?|\f|\v|\u2028")
_UNSTORABLE = re.compile("[\ud800-\udfff]")


def read_document(content: bytes, limits: sniffing.DocumentLimits) -> sniffing.ExtractedText:
    """Return the text of a document in a form that can be stored.

    Raises DocumentError; MemoryError, RecursionError and any exception of a library on a broken
    file.
    """
    if len(content) > limits.size:
        raise sniffing.DocumentError("too_large")
    found = _READERS.get(sniffing.sniff(content), read_plain)(content, limits)
    sections = [sniffing.Section(_storable(each.text), each.page) for each in found.sections]
    sections = [each for each in sections if each.text.strip()]
    if not sections:
        raise sniffing.DocumentError("no_text")
    if sum(len(each.text) for each in sections) > limits.characters:
        raise sniffing.DocumentError("too_long")
    title = " ".join(_storable(found.title).split())[:_MAX_TITLE_LENGTH]
    return replace(found, sections=sections, title=title)


def _storable(text: str) -> str:
    text = _NEW_LINE.sub("\n", text.replace("\x00", ""))
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def read_plain(content: bytes, limits: sniffing.DocumentLimits) -> sniffing.ExtractedText:
    """Return a text file of any encoding as one section. Raises DocumentError."""
    encoding, is_guessed = sniffing.encoding_of(content)
    try:
        text = content.decode(encoding, errors="replace" if is_guessed else "strict")
    except UnicodeDecodeError as error:
        raise sniffing.DocumentError(
            "damaged", ErrorText("text_wrong_encoding", encoding=encoding)
        ) from error
    return sniffing.ExtractedText(
        media_type=sniffing.TEXT,
        sections=[sniffing.Section(text)],
        warnings=[ErrorText("encoding_guessed", encoding=encoding)] if is_guessed else [],
    )


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


def read_docx(content: bytes, limits: sniffing.DocumentLimits) -> sniffing.ExtractedText:
    """Return the text of the body, with tables row by row. Raises DocumentError."""
    _check_archive(content)
    try:
        document = Document(io.BytesIO(content))
        body = document.element.body
        if body.getroottree().docinfo.internalDTD is not None:
            raise sniffing.DocumentError("damaged", ErrorText("docx_entities"))
        text = _within("\n".join(_blocks(body)), limits)
        title = document.core_properties.title
    except (OpcError, etree.LxmlError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise sniffing.DocumentError("damaged") from error
    return sniffing.ExtractedText(sniffing.DOCX, [sniffing.Section(text)], title=title or "")


def _check_archive(content: bytes) -> None:
    """Refuse zip bombs by the sizes that the archive declares; no more than that is unpacked."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = archive.infolist()
    if any(part.flag_bits & 0x1 for part in parts):
        raise sniffing.DocumentError("encrypted")
    xml = sum(part.file_size for part in parts if part.filename.endswith((".xml", ".rels")))
    unpacked = sum(part.file_size for part in parts)
    if len(parts) > MAX_PARTS or unpacked > MAX_UNPACKED or xml > MAX_XML:
        raise sniffing.DocumentError("too_much_memory", ErrorText("docx_unpacks_too_large"))


def _within(text: str, limits: sniffing.DocumentLimits) -> str:
    if len(text) > limits.characters:
        raise sniffing.DocumentError("too_long")
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


# Read PDF files with pypdf.

# pypdf logs its repairs there, which helps nobody here.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def read_pdf(content: bytes, limits: sniffing.DocumentLimits) -> sniffing.ExtractedText:
    """Return the text of each page. Raises DocumentError."""
    try:
        reader = PdfReader(io.BytesIO(content))
        _open(reader)
        count = len(reader.pages)
        if count > limits.pages:
            raise sniffing.DocumentError(
                "too_many_pages", ErrorText("pdf_page_limit", count=count, most=limits.pages)
            )
        return _read(reader, count, limits)
    except (FileNotDecryptedError, DependencyError) as error:
        raise sniffing.DocumentError("encrypted") from error
    except LimitReachedError as error:
        raise sniffing.DocumentError("too_much_memory") from error
    except PyPdfError as error:
        raise sniffing.DocumentError("damaged") from error


def _open(reader: PdfReader) -> None:
    """Open an encrypted document with the empty password.

    Many documents are encrypted this way against printing or changes, and every reader opens them.
    """
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise sniffing.DocumentError("encrypted")


def _read(reader: PdfReader, count: int, limits: sniffing.DocumentLimits) -> sniffing.ExtractedText:
    sections = []
    characters = 0
    for number, page in enumerate(reader.pages, start=1):
        text = in_reading_order(page.extract_text()).strip()
        characters += len(text)
        if characters > limits.characters:
            raise sniffing.DocumentError("too_long")
        if text.strip():
            sections.append(sniffing.Section(text, page=number))
    warnings: list[str] = []
    if sections and len(sections) < count:
        warnings.append(ErrorText("pages_without_text", lacking=count - len(sections), count=count))
    return sniffing.ExtractedText(
        sniffing.PDF, sections, pages=count, title=_title(reader), warnings=warnings
    )


def _title(reader: PdfReader) -> str:
    try:
        found = reader.metadata.title if reader.metadata else None
    except (PyPdfError, ValueError, TypeError, AttributeError):
        return ""
    return str(found or "")


# Put lines of Hebrew and Arabic from a PDF into reading order.

_RTL = ("R", "AL")
_LTR = ("L", "EN", "AN")
# No line begins with one of these: it ended the sentence, at the left.
_ENDING = re.compile(r"\s*([.,!?:;]+)")
_PUNCTUATED = re.compile(r"[^\s]+")
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")
_FINALS = "םןץףך"
_HEBREW_LETTERS = re.compile("[א-ת]{2,}")


@dataclass
class _Stretch:
    """Letters of one direction, with the neutral characters before and after them."""

    rtl: bool
    text: str
    lead: str = ""
    trail: str = ""

    def written(self) -> str:
        if self.rtl:
            return self.lead + self.text + self.trail
        # On paper, the text to the right of it comes first.
        return self.trail + self.text


def in_reading_order(text: str) -> str:
    """Return a page's text in reading order.

    The text is unchanged where most of its letters run from left to right.
    """
    directions = [unicodedata.bidirectional(char) for char in text if char.isalpha()]
    if 2 * sum(direction in _RTL for direction in directions) <= len(directions):
        return text
    line_of = _turned_back if _is_mirrored(text) else _reordered
    return "\n".join(map(line_of, text.split("\n")))


def _is_mirrored(text: str) -> bool:
    """Return whether words begin with letters that only end words.

    In that case the file stored them in reading order, and pypdf reversed them.
    """
    words = _HEBREW_LETTERS.findall(text)
    begin = sum(word[0] in _FINALS for word in words)
    return begin > sum(word[-1] in _FINALS for word in words)


def _turned_back(line: str) -> str:
    """Reverse each stretch again; the order of the stretches is already correct."""
    stretches = _stretches(line)
    return (
        "".join(
            each.trail[::-1] + each.text[::-1] + each.lead[::-1]
            if each.rtl
            else each.lead + each.text + each.trail
            for each in stretches
        )
        or line
    )


def _reordered(line: str) -> str:
    stretches = _stretches(line)
    letters = [sum(map(str.isalpha, each.text)) * (1 if each.rtl else -1) for each in stretches]
    rtl = sum(count for count in letters if count > 0)
    if not rtl or sum(letters) < -rtl:
        # More than twice as many letters run from left to right: it is a left-to-right line.
        return line
    ending = ""
    first = stretches[0]
    found = _ENDING.match(first.lead) if first.rtl else None
    if found:
        ending, first.lead = found[1], first.lead[found.end() :]
    whole = "".join(each.written() for each in reversed(stretches)).strip() + ending
    return whole.translate(_MIRRORED) if _brackets_are_mirrored(whole) else whole


def _brackets_are_mirrored(line: str) -> bool:
    opening, closing = line.find("("), line.find(")")
    return closing >= 0 and (opening < 0 or closing < opening)


def _stretches(line: str) -> list[_Stretch]:
    """Return the line's stretches from left to right.

    Each stretch has its share of the neutral characters between the stretches.
    """
    found: list[_Stretch] = []
    gap = ""
    for char in line:
        direction = unicodedata.bidirectional(char)
        if direction not in _RTL and direction not in _LTR:
            gap += char
            continue
        rtl = direction in _RTL
        if found and found[-1].rtl == rtl:
            found[-1].text += gap + char
        else:
            found.append(_Stretch(rtl, char, lead=gap))
        gap = ""
    if found:
        found[-1].trail = gap
    _share_gaps(found)
    return found


def _share_gaps(found: list[_Stretch]) -> None:
    """Assign each gap, so far the later stretch's lead, to the stretch that it belongs to."""
    for place in range(1, len(found)):
        before, after = found[place - 1], found[place]
        if before.rtl:
            # On paper, the gap is at the left of the letters, where they end.
            before.trail, after.lead = after.lead, ""
        elif place == len(found) - 1:
            before.trail, after.lead = after.lead, ""
        elif after.lead.isspace():
            # One space may count for both sides of the later stretch.
            before.trail, after.lead = " ", " "
        else:
            mark = _PUNCTUATED.match(after.lead)
            cut = mark.end() if mark else 0
            before.trail, after.lead = after.lead[:cut], after.lead[cut:]


_READERS = {sniffing.PDF: read_pdf, sniffing.DOCX: read_docx}
