"""What the server noted in English, in the reader's language.

Errors are stored, logged and handed on in English: a worker knows no reader, and what the API and
the command line say doesn't depend on one. A page shows them in its own language by ``told``.
"""

from __future__ import annotations

import re
from functools import cache

from django.utils.translation import gettext

from memoryproject.lib.told_texts import TOLD_TEXTS

_PLACE = re.compile(r"%\((\w+)\)s|%%")
# Such as "OperationalError: …", where all that went wrong is noted alike.
_KIND = re.compile(r"(?P<kind>[A-Z]\w+): (?P<text>.+)", re.DOTALL)


def told(text: str) -> str:
    """The text in the active language, with what was put into it; as it is where it is none of
    ours, such as the words of another server."""
    if not text:
        return text
    for pattern, template in _known():
        if found := pattern.fullmatch(text):
            values = {name: told(value) for name, value in found.groupdict().items()}
            return gettext(template) % values
    if found := _KIND.fullmatch(text):
        return f"{found['kind']}: {told(found['text'])}"
    return text


@cache
def _known() -> list[tuple[re.Pattern[str], str]]:
    """Those that say most by themselves first: others may hold them, too."""
    by_length = sorted(TOLD_TEXTS, key=lambda text: -len(_PLACE.sub("", text)))
    return [(re.compile(_as_pattern(text), re.DOTALL), text) for text in by_length]


def _as_pattern(template: str) -> str:
    """``…%(name)s…`` as an expression with a group of that name."""
    found, end = "", 0
    for place in _PLACE.finditer(template):
        found += re.escape(template[end : place.start()])
        found += f"(?P<{place[1]}>.*?)" if place[1] else "%"
        end = place.end()
    return found + re.escape(template[end:])
