"""Read PDF files with pypdf."""

from __future__ import annotations

import io
import logging
import re
import unicodedata
from dataclasses import dataclass

from pypdf import PasswordType, PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError, PyPdfError

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.documents.sniffing import (
    PDF,
    DocumentError,
    DocumentLimits,
    ExtractedText,
    Section,
)

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


# Put lines of Hebrew and Arabic from a PDF into reading order.

_RTL = ("R", "AL")
_LTR = ("L", "EN", "AN")
# No line begins with one of these: it ended the sentence, at the left.
_ENDING = re.compile(r"\s*([.,!?:;]+)")
_PUNCTUATED = re.compile(r"[^\s]+")
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")
_FINALS = "םןץףך"
_HEBREW_WORD = re.compile("[א-ת]{2,}")


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
    words = _HEBREW_WORD.findall(text)
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
