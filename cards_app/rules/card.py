"""The fields of a memory card (seed 001), from the lines of a conversation.

The same lines give the same fields, on every platform.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from cards_app.rules.phrases import asks_or_calls, tells_decision, tells_todo
from cards_app.rules.session_data import Line, one_line
from cards_app.rules.vocabulary import MAX_ENTITIES, MAX_KEYWORDS, EntityCounter, KeywordCounter
from cards_app.rules.words import MAX_WORD_LENGTH, Sentence, is_question, split_sentences
from memoryproject.foundation.redaction.redact import redact
from memoryproject.foundation.text.characters import cut_at_word

ALGORITHM_VERSION = "1.0"
UNTITLED = "Untitled Session"
MAX_TITLE_LENGTH = 80
MAX_ITEM_LENGTH = 100
MAX_ITEMS = 3
CUT_MARK = "..."


@dataclass(frozen=True)
class CardFields:
    """The contents of a card, redacted. Each text is one line.

    The title has at most 80 characters; three bullets, decisions, todos and quotes have at most
    100 each; there are at most ten entities and ten keywords.
    """

    title: str
    summary_bullets: tuple[str, ...]
    decisions: tuple[str, ...]
    todos: tuple[str, ...]
    entities: tuple[str, ...]
    keywords: tuple[str, ...]
    notable_quotes: tuple[str, ...]


def extract_card(lines: Iterable[Line]) -> CardFields:
    """Return the card of a conversation. Lines without text (only a picture) are ignored.

    A role is a word of at most 32 letters. Each line is read once and not kept, so that a long
    conversation can be passed line by line. Only the fields and the word counts are kept.
    """
    making = _Making()
    for line in lines:
        if line.content.strip():
            making.add(line.role, redact(line.content))
    return making.fields()


class _Making:
    """A card under construction, from redacted texts."""

    def __init__(self) -> None:
        self._title: str | None = None
        self._bullets: list[str] = []
        self._decisions: list[str] = []
        self._todos: list[str] = []
        self._quotes: list[str] = []
        self._entities = EntityCounter()
        self._keywords = KeywordCounter()

    def add(self, role: str, text: str) -> None:
        if self._title is None and role == "user":
            self._title = _fitted(text, MAX_TITLE_LENGTH)
        if len(self._bullets) < MAX_ITEMS:
            self._bullets.append(_bullet(role, text))
        sentences = split_sentences(text)
        _add_item(self._decisions, text, sentences, tells_decision)
        _add_item(self._todos, text, sentences, _is_todo)
        _add_item(self._quotes, text, sentences, asks_or_calls)
        self._entities.add(sentences)
        self._keywords.add(text)

    def fields(self) -> CardFields:
        return CardFields(
            title=UNTITLED if self._title is None else self._title,
            summary_bullets=tuple(self._bullets),
            decisions=tuple(self._decisions),
            todos=tuple(self._todos),
            entities=tuple(islice(_without_data(self._entities.found(None)), MAX_ENTITIES)),
            keywords=tuple(self._keywords.found()),
            notable_quotes=tuple(self._quotes),
        )


def _without_data(names: Iterable[str]) -> Iterator[str]:
    """Yield the names that hold no personal data by themselves, cut out of their sentence."""
    return (name for name in names if redact(name) == name)


def _bullet(role: str, text: str) -> str:
    """Return the text behind its role, both within the length.

    A long word is cut instead of left out, so that the bullet is not empty.
    """
    head = f"[{role}] "
    return head + _fitted(text, MAX_ITEM_LENGTH - len(head))


def _is_todo(sentence: str) -> bool:
    """Return whether the sentence is a task. A question isn't one."""
    return tells_todo(sentence) and not is_question(sentence)


def _add_item(
    found: list[str], text: str, sentences: Sequence[Sentence], matches: Callable[[str], bool]
) -> None:
    """Add the message from its first matching sentence on, unless there are enough items."""
    if len(found) == MAX_ITEMS:
        return
    start = next((each.start for each in sentences if matches(each.text)), None)
    if start is not None:
        found.append(_fitted(text[start:], MAX_ITEM_LENGTH))


def _fitted(text: str, longest: int) -> str:
    """Return the text on one line, within its length, and redacted.

    Joining lines and cutting can create a telephone number.
    """
    shown = cut_at_word(one_line(text), longest, mark=CUT_MARK)
    while (clean := redact(shown)) != shown:
        shown = cut_at_word(clean, longest, mark=CUT_MARK)
    return shown


# Seed 001's validation checklist.

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
