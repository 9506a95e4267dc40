"""Make a text of an outside service storable."""

from __future__ import annotations

import re

# All control characters but tab and line breaks. PostgreSQL refuses NUL; nobody can read the rest.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def storable(text: str) -> str:
    """Return the text without control characters and without halves of characters.

    Two halves that stand together become their character.
    """
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return _CONTROLS.sub("", text)
