"""Load the PDF's fonts, FiraGO, and find the characters they can show."""

from __future__ import annotations

import importlib
import re
import unicodedata
from functools import cache
from io import BytesIO
from threading import RLock

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

REGULAR = "FiraGO-Regular"
BOLD = "FiraGO-Bold"
MODULES = {REGULAR: "pymupdf_fonts.FiraGO_Regular", BOLD: "pymupdf_fonts.FiraGO_Bold"}
# A font is one object for the process and keeps a file position: two documents must not be finished
# at once.
FONTS_LOCK = RLock()

# Their letters change with their neighbours or are stacked, which needs a shaper. Without one they
# are misread: a Thai tone mark covers the vowel below it, Arabic letters are not joined.
_SHAPED = ("ARABIC", "DEVANAGARI", "THAI")
# Points are placed correctly at most Hebrew letters; the dots of shin only in precomposed letters.
_POINTS = {*map(chr, range(0x05B0, 0x05BD)), "\u05c7"}
_SHIN = re.compile("\u05e9([\u05b0-\u05bc]*)([\u05c1\u05c2])")
_SHINS = {"\u05c1": "\ufb2a", "\u05c2": "\ufb2b"}


def fonts_load() -> frozenset[str]:
    """Unpack and register the fonts, once a process (a fifth of a second, 2 MB).

    Returns the characters that can be shown.
    """
    with FONTS_LOCK:
        return _loaded()


@cache
def _loaded() -> frozenset[str]:
    known: list[set[int]] = []
    for name, module in MODULES.items():
        font = TTFont(name, BytesIO(importlib.import_module(module).fontbuffer))
        pdfmetrics.registerFont(font)
        known.append(set(font.face.charToGlyph))
    return frozenset(filter(_is_shown, map(chr, set.intersection(*known))))


def _is_shown(character: str) -> bool:
    if unicodedata.category(character).startswith("M"):
        return character in _POINTS
    script = unicodedata.name(character, "")
    return character.isprintable() and not any(each in script for each in _SHAPED)


def readable(text: str) -> str:
    """Replace each character that the fonts can't show by its code point, ``[U+1F600]``."""
    if text.isascii() and text.isprintable():
        return text
    shown = fonts_load()
    composed = _SHIN.sub(_shin, unicodedata.normalize("NFC", text))
    return "".join(each if each in shown else f"[U+{ord(each):04X}]" for each in composed)


def _shin(found: re.Match[str]) -> str:
    return _SHINS[found[2]] + found[1]


def text_width(text: str, font: str, size: float) -> float:
    """Return the width in points."""
    fonts_load()
    return float(pdfmetrics.stringWidth(text, font, size))
