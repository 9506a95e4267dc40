"""How documents are called: what an identifier may look like, and the file name made of it.

A name is what stands before ``.json``: the identifier itself, in ``context`` with the date
before it. What you type is what the file is called; nothing is replaced in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import date
from fnmatch import translate

from memories_app.memory_document_format.categories import CONTEXT
from memories_app.memory_document_format.problems import MemoryDocumentNameError, shown

SUFFIX = ".json"
# With a date, a number in the archive and the suffix a name stays within the 255 of file systems.
MAX_BYTES = 200
_MAX_NAME_CHARACTERS = 230
_FORBIDDEN = frozenset('/\\:*?"<>|')
# Windows knows no files of these names; trees travel.
_RESERVED = re.compile(r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.DOTALL)
_DATED = re.compile(r"(\d{4})-(\d\d)-(\d\d)-(.+)", re.ASCII | re.DOTALL)


def identifier_read(identifier: str) -> str:
    """The identifier in the form in which it is compared (Unicode's NFC).
    Raises MemoryDocumentNameError."""
    composed = unicodedata.normalize("NFC", identifier)
    why = name_refused(composed)
    if why:
        raise MemoryDocumentNameError(f"The identifier {shown(composed)} {why}.")
    return composed


def name_refused(name: str) -> str:
    """Why this can't be a name; empty where it can."""
    if not name:
        return "is empty"
    if name.startswith((".", "-")) or ".." in name:
        return "begins with a dot or a hyphen, or has two dots in a row"
    if name != name.strip() or name.endswith("."):
        return "begins or ends with a space, or ends with a dot"
    wrong = next((each for each in name if not _is_allowed(each)), "")
    if wrong:
        return f"has the character {shown(wrong)}, which names of files can't have everywhere"
    if name.casefold().endswith(SUFFIX):
        return f"ends with {SUFFIX}: give it without"
    if _RESERVED.fullmatch(name):
        return "is a name that Windows keeps for a device"
    if len(name.encode()) > _MAX_NAME_CHARACTERS:
        return f"is longer than {MAX_BYTES} bytes"
    if unicodedata.normalize("NFC", name) != name:
        return "is not in Unicode's form NFC"
    return ""


def _is_allowed(character: str) -> bool:
    """Letters of any script, marks, digits, the usual signs, and the plain space: nothing
    invisible, and nothing that separates folders or stands for other characters."""
    if character == " ":
        return True
    return unicodedata.category(character)[0] in "LMNPS" and character not in _FORBIDDEN


def name_for(category: str, identifier: str, today: date) -> str:
    """The name under which it is saved. In ``context`` the date is put before it, unless it
    begins with one: then it names that very document. Raises MemoryDocumentNameError."""
    identifier = identifier_read(identifier)
    dated, rest = date_apart(category, identifier)
    if len(rest.encode()) > MAX_BYTES:
        raise MemoryDocumentNameError(
            f"The identifier {shown(identifier)} is longer than {MAX_BYTES} bytes."
        )
    if category != CONTEXT or dated is not None:
        return identifier
    return f"{today.isoformat()}-{identifier}"


def date_apart(category: str, name: str) -> tuple[date | None, str]:
    """The date of a name in ``context`` and what follows it; without one, None and the name."""
    found = _DATED.fullmatch(name) if category == CONTEXT else None
    if found is None:
        return None, name
    try:
        return date(int(found[1]), int(found[2]), int(found[3])), found[4]
    except ValueError:
        return None, name


def identifier_of(category: str, name: str) -> str:
    """The name without its date."""
    return date_apart(category, name)[1]


def newest(category: str, identifier: str, names: Iterable[str]) -> str | None:
    """Which of the names is meant: that very name; in ``context`` an identifier without a date
    means the newest of its dates, before a name without any."""
    found = {name for name in names if identifier in (name, identifier_of(category, name))}
    if date_apart(category, identifier)[0] is not None and identifier in found:
        return identifier
    dated = [name for name in found if name != identifier]
    return max(dated) if dated else next(iter(found), None)


def numbered(name: str, taken: Iterable[str]) -> str:
    """The name; where it is taken, with the number after the highest one: task-42.2."""
    ours = numbers_of(name, taken)
    return f"{name}.{max(ours.values()) + 1}" if name in ours else name


def numbers_of(name: str, names: Iterable[str]) -> dict[str, int]:
    """Which of the names are this one with a number or without, and the number."""
    ours = re.compile(re.escape(name) + r"(?:\.(\d{1,9}))?", re.ASCII)
    found = ((each, ours.fullmatch(each)) for each in names)
    return {each: int(match[1] or 1) for each, match in found if match}


class Pattern:
    """A shell pattern: * any characters, ? one, [abc] one of these; case counts. It fits a
    document by its name, with or without the date of ``context`` and the suffix."""

    def __init__(self, text: str) -> None:
        """Raises MemoryDocumentNameError."""
        composed = unicodedata.normalize("NFC", text)
        if not composed or len(composed) > MAX_BYTES:
            raise MemoryDocumentNameError(f"A pattern has 1 to {MAX_BYTES} characters.")
        try:
            self._fits = re.compile(translate(composed)).match
        except re.error as error:
            raise MemoryDocumentNameError(f"{shown(text)} is no pattern: {error.msg}.") from error

    def fits(self, category: str, name: str) -> bool:
        forms = {name, identifier_of(category, name)}
        return any(self._fits(form) or self._fits(form + SUFFIX) for form in forms)
