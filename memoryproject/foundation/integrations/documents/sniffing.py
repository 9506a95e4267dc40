"""Detect the type of a file by its content.

The file's name and the type that its sender states are ignored.
"""

import codecs
import io
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from memoryproject.foundation.errors.stored_errors import ErrorText

# PDF readers allow some bytes before the header.
_PDF_HEADER_WITHIN = 1024
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_WORD_PART = "word/document.xml"
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
# These files are text only in form: readers see different text.
_MARKUP = (b"{\\rtf", b"%!ps", b"<!doctype html", b"<html")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
# Tab, line feed, form feed, carriage return and escape also occur in texts.
_CONTROLS = frozenset(range(32)) - {9, 10, 12, 13, 27}


def sniff(content: bytes) -> str:
    """Return the media type of a file that can be read. Raises DocumentError for any other."""
    if not content.strip():
        raise DocumentError("empty")
    if b"%PDF-" in content[:_PDF_HEADER_WITHIN]:
        return PDF
    if content.startswith(b"PK\x03\x04"):
        return _sniff_zip(content)
    if content.startswith(_OLE):
        if _ENCRYPTED_PACKAGE in content:
            raise DocumentError("encrypted")
        raise DocumentError("unknown_type", ErrorText("document_save_as"))
    if content.lstrip(b"\xef\xbb\xbf \t\r\n")[:16].lower().startswith(_MARKUP):
        raise DocumentError("unknown_type")
    if not content.startswith(_UTF16) and _is_binary(content):
        raise DocumentError("unknown_type")
    return TEXT


def _sniff_zip(content: bytes) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise DocumentError("damaged") from error
    if _WORD_PART not in names:
        raise DocumentError("unknown_type")
    return DOCX


def _is_binary(content: bytes) -> bool:
    """Return whether the content isn't text.

    Text has no control characters except for a stray one. In UTF-16 without a byte order mark,
    every other byte is zero.
    """
    sample = content[:65_536]
    if looks_utf16(sample):
        return False
    return b"\x00" in content or sum(byte in _CONTROLS for byte in sample) * 100 > len(sample)


def looks_utf16(sample: bytes) -> str:
    """Return the encoding of UTF-16 text without a byte order mark; empty if it is none.

    The positions of its zeros or of its Hebrew high bytes decide.
    """
    if len(sample) < 4 or len(sample) % 2:
        sample = sample[: len(sample) // 2 * 2]
    even, odd = sample[::2], sample[1::2]
    if not odd or b"\x00" not in sample:
        return ""
    for name, high, low in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        known = sum(byte in (0x00, 0x05, 0x20) for byte in high)
        if known > 0.9 * len(high) and low.count(0) * 100 <= len(low):
            return name
    return ""


# The encoding of a text.

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


def encoding_of(content: bytes) -> tuple[str, bool]:
    """Return the encoding of a text, and whether it is only the likeliest one."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding, False
    unmarked = looks_utf16(content[:_SAMPLE])
    if unmarked:
        return unmarked, False
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return _guess(content[:_SAMPLE]), True
    return "utf-8", False


def _guess(sample: bytes) -> str:
    """Return the most likely encoding of text that isn't UTF-8."""
    from charset_normalizer import from_bytes  # noqa: PLC0415 slow, and hardly ever needed

    if _looks_hebrew(sample):
        return "cp1255"
    found = from_bytes(sample, cp_isolation=_GUESSED_AMONG)
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


# The interface for reading documents: it takes a file and returns its text in sections.

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
TEXT = "text/plain"
MARKDOWN = "text/markdown"

# Reasons why a document can't be read: the codes of DocumentError, with the texts for staff.
REASONS = {
    code: ErrorText(f"document_{code}")
    for code in (
        *("unknown_type", "empty", "too_large", "too_many_pages", "too_long", "encrypted"),
        *("no_text", "damaged", "too_slow", "too_much_memory", "missing", "unavailable"),
    )
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
