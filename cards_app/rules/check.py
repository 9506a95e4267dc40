"""Seed 001's validation checklist."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from cards_app.rules.card import CUT_MARK, MAX_ITEM_LENGTH, MAX_ITEMS, MAX_TITLE_LENGTH, UNTITLED
from cards_app.rules.lines import Line, one_line
from cards_app.rules.redact import redact
from cards_app.rules.vocabulary import MAX_ENTITIES, MAX_KEYWORDS
from cards_app.rules.words import MAX_WORD_LENGTH

MAX_COUNT = {
    "summary_bullets": MAX_ITEMS,
    "decisions": MAX_ITEMS,
    "todos": MAX_ITEMS,
    "entities": MAX_ENTITIES,
    "keywords": MAX_KEYWORDS,
    "notable_quotes": MAX_ITEMS,
}
OF_WORDS = frozenset({"entities", "keywords"})

_ROLE_PREFIX = re.compile(r"\[[^\[\]\s]+\] \S")


def check_fields(fields: object, *, lines: Iterable[Line] | None = None) -> list[str]:
    """Return every failure of a card's fields as "path: problem".

    ``lines``: the source of the card.
    """
    if not isinstance(fields, Mapping):
        return [f"card: must be an object, not of type {type(fields).__name__}."]
    failures = list(_title(fields.get("title")))
    for name, most in MAX_COUNT.items():
        failures += _list(name, fields.get(name), most)
    if lines is not None and isinstance(fields.get("title"), str):
        failures += _title_of(fields["title"], lines)
    return failures


def _title(title: object) -> Iterator[str]:
    if not isinstance(title, str) or not title.strip():
        yield "title: must be there, as a text."
        return
    yield from _text("title", title, MAX_TITLE_LENGTH)


def _list(name: str, items: object, most: int) -> Iterator[str]:
    if not isinstance(items, list | tuple):
        yield f"{name}: must be a list."
        return
    if len(items) > most:
        yield f"{name}: has {len(items)} items, at most {most} are allowed."
    longest = MAX_WORD_LENGTH if name in OF_WORDS else MAX_ITEM_LENGTH
    for place, item in enumerate(items):
        path = f"{name}[{place}]"
        if not isinstance(item, str) or not item.strip():
            yield f"{path}: must be a text with something in it."
            continue
        yield from _text(path, item, longest)
        if name == "summary_bullets" and not _ROLE_PREFIX.match(item):
            yield f"{path}: must begin with the role in brackets, such as [user]."


def _text(path: str, text: str, longest: int) -> Iterator[str]:
    """Check that the text has its length, is one line, and holds nothing that would be redacted."""
    if len(text) > longest:
        yield f"{path}: has {len(text)} characters, at most {longest} are allowed."
    if text != one_line(text):
        yield f"{path}: must be one line, with single spaces."
    if redact(text) != text:
        yield f"{path}: holds personal data, which is to be redacted."


def _title_of(title: str, lines: Iterable[Line]) -> Iterator[str]:
    """Check that a title ends with dots unless it is the whole first text of the user."""
    texts = (line.content for line in lines if line.role == "user" and line.content.strip())
    first = next(texts, UNTITLED)
    # Redact before and after joining the lines, as for the title.
    whole = redact(one_line(redact(first)))
    if title != whole and not title.endswith(CUT_MARK):
        yield f'title: is cut, so it must end with "{CUT_MARK}".'
