"""Categories and names of documents: valid identifiers, and the file names made of them.

A name is the part before ``.json``: the identifier itself, in ``context`` with the date before
it. The identifier appears in the file name unchanged.
"""

import re
import unicodedata
from collections.abc import Iterable
from datetime import date
from fnmatch import translate

from memories_app.memory_document_format.strict_json import (
    ANY,
    MemoryDocumentNameError,
    Shape,
    shown,
)

SUFFIX = ".json"
# With a date, an archive number and the suffix a name stays within 255 bytes.
MAX_BYTES = 200
_MAX_NAME_CHARACTERS = 230
_FORBIDDEN = frozenset('/\\:*?"<>|')
# Windows allows no files with these names, and trees are copied between systems.
_RESERVED = re.compile(r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.DOTALL)
_DATED = re.compile(r"(\d{4})-(\d\d)-(\d\d)-(.+)", re.ASCII | re.DOTALL)


def identifier_read(identifier: str) -> str:
    """Return the identifier in the form in which it is compared (Unicode's NFC).

    Raises MemoryDocumentNameError.
    """
    composed = unicodedata.normalize("NFC", identifier)
    why = name_refused(composed)
    if why:
        raise MemoryDocumentNameError(f"The identifier {shown(composed)} {why}.")
    return composed


def name_refused(name: str) -> str:
    """Return why this can't be a name; empty if it is valid."""
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
    """Allow letters of any script, marks, digits, the usual signs, and the plain space.

    Nothing invisible is allowed, and nothing that separates folders or is a wildcard.
    """
    if character == " ":
        return True
    return unicodedata.category(character)[0] in "LMNPS" and character not in _FORBIDDEN


def name_for(category: str, identifier: str, today: date) -> str:
    """Return the name under which a document is saved.

    In ``context`` the date is put before the identifier. An identifier that begins with a date
    names that very document. Raises MemoryDocumentNameError.
    """
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
    """Split a name of ``context`` into its date and the rest; without a date, None and the name."""
    found = _DATED.fullmatch(name) if category == CONTEXT else None
    if found is None:
        return None, name
    try:
        return date(int(found[1]), int(found[2]), int(found[3])), found[4]
    except ValueError:
        return None, name


def identifier_of(category: str, name: str) -> str:
    """Return the name without its date."""
    return date_apart(category, name)[1]


def newest(category: str, identifier: str, names: Iterable[str]) -> str | None:
    """Return the name that the identifier means: an equal name first.

    In ``context`` an identifier without a date means its newest date, before a name without a
    date.
    """
    found = {name for name in names if identifier in (name, identifier_of(category, name))}
    if date_apart(category, identifier)[0] is not None and identifier in found:
        return identifier
    dated = [name for name in found if name != identifier]
    return max(dated) if dated else next(iter(found), None)


def numbered(name: str, taken: Iterable[str]) -> str:
    """Return the name; if it is taken, with the number after the highest one: task-42.2."""
    ours = numbers_of(name, taken)
    return f"{name}.{max(ours.values()) + 1}" if name in ours else name


def numbers_of(name: str, names: Iterable[str]) -> dict[str, int]:
    """Return the names that equal this one with or without a number, each with its number."""
    ours = re.compile(re.escape(name) + r"(?:\.(\d{1,9}))?", re.ASCII)
    found = ((each, ours.fullmatch(each)) for each in names)
    return {each: int(match[1] or 1) for each, match in found if match}


class Pattern:
    """A shell pattern: * any characters, ? one, [abc] one of these; case counts.

    It matches a document by its name, with or without the date of ``context`` and the suffix.
    """

    def __init__(self, text: str) -> None:
        """Parse the pattern. Raises MemoryDocumentNameError."""
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


# The four categories and the shape of their content. Every field may be left out.


CONTEXT = "context"
DECISIONS = "decisions"
INTERFACES = "interfaces"
HANDOFFS = "handoffs"
CATEGORIES = (CONTEXT, DECISIONS, INTERFACES, HANDOFFS)

ACCEPTED, SUPERSEDED, DEPRECATED = "accepted", "superseded", "deprecated"
STATUSES = (ACCEPTED, SUPERSEDED, DEPRECATED)

# The status of a handoff that may be completed.
COMPLETE = "100%"

CONTENT: dict[str, Shape] = {
    CONTEXT: {
        "decisions": [str],
        "interfaces": {ANY: {"methods": [str]}},
        "pending": [str],
        "notes": str,
    },
    DECISIONS: {
        "decision": str,
        "rationale": str,
        "alternatives_considered": [str],
        "constraints": [str],
        "status": STATUSES,
    },
    INTERFACES: {
        "module": str,
        "types": {ANY: {ANY: str}},
        "functions": {ANY: {"params": [str], "returns": str}},
        "events": [str],
    },
    HANDOFFS: {
        "task": str,
        "progress": str,
        "completed": [str],
        "pending": [str],
        "blockers": [str],
        "next_steps": [str],
        "context_references": [str],
    },
}
