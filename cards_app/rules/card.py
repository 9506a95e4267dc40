"""The fields of a memory card (seed 001), from the lines of a conversation.

The same lines give the same fields, on every platform.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from cards_app.rules.outcome import ACTORS, MAX_OPEN, OpenMatters, Outcome, who_acts
from cards_app.rules.phrases import asks_or_calls
from cards_app.rules.session_data import Line, one_line
from cards_app.rules.statements import Found, Meaning, Statements, read_line
from cards_app.rules.vocabulary import MAX_ENTITIES, MAX_KEYWORDS, EntityCounter, KeywordCounter
from cards_app.rules.words import MAX_WORD_LENGTH
from memoryproject.foundation.redaction.redact import redact
from memoryproject.foundation.text.characters import cut_at_word

ALGORITHM_VERSION = "1.8"
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
    # None in a card of earlier rules. It follows from the messages as the others do, and is no
    # part of the hash: it can't be hashed.
    outcome: Outcome | None = field(default=None, kw_only=True, compare=False)


def extract_card(lines: Iterable[Line], *, meaning: Meaning | None = None) -> CardFields:
    """Return the card of a conversation. Lines without text (only a picture) are ignored.

    A role is a word of at most 32 letters. Each line is read once and not kept, so that a long
    conversation can be passed line by line. Only the fields, the word counts and some statements
    are kept. ``meaning``: see ``statements``.
    """
    making = _Making(meaning)
    for line in lines:
        if line.content.strip():
            making.add(line.role, redact(line.content))
    return making.fields()


class _Making:
    """A card under construction, from redacted texts."""

    def __init__(self, meaning: Meaning | None) -> None:
        self._title: str | None = None
        self._bullets: list[str] = []
        self._quotes: list[str] = []
        self._count = 0
        self._statements = Statements(meaning)
        self._matters = OpenMatters()
        self._entities = EntityCounter()
        self._keywords = KeywordCounter()

    def add(self, role: str, text: str) -> None:
        if self._title is None and role == "user":
            self._title = _fitted(text, MAX_TITLE_LENGTH)
        if len(self._bullets) < MAX_ITEMS:
            self._bullets.append(_bullet(role, text))
        message = read_line(self._count, Line(role, text))
        self._count += 1
        self._statements.add(message)
        self._matters.add(message)
        sentences = [each.sentence for each in message.sentences]
        asking = (each.start for each in sentences if asks_or_calls(each.text))
        if len(self._quotes) < MAX_ITEMS and (start := next(asking, None)) is not None:
            self._quotes.append(_item(text[start:]))
        self._entities.add(sentences)
        self._keywords.add(text)

    def fields(self) -> CardFields:
        decisions, todos = self._statements.found()
        matters = self._matters.found()
        outcome = Outcome(
            settled=_item(_settling(decisions[-1])) if decisions else "",
            open=[
                _item(message.text[spoken.sentence.start :])
                for message, spoken in matters[-MAX_OPEN:]
            ],
            acts=who_acts(matters, todos, self._matters.last),
        )
        return CardFields(
            title=UNTITLED if self._title is None else self._title,
            summary_bullets=tuple(self._bullets),
            decisions=chosen(decisions),
            todos=chosen(todos),
            entities=tuple(islice(_without_data(self._entities.found(None)), MAX_ENTITIES)),
            keywords=tuple(self._keywords.found()),
            notable_quotes=tuple(self._quotes),
            outcome=outcome,
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


def chosen(found: list[Found]) -> tuple[str, ...]:
    """Return the surest ones in their order; of equally sure ones the first."""
    surest = sorted(found, key=lambda each: -each.probability)[:MAX_ITEMS]
    surest.sort(key=lambda each: each.message.number)
    return tuple(_item(each.text) for each in surest)


def _settling(decision: Found) -> str:
    """Return the confirmation of a decision, which says it in full, or else its own text."""
    confirmed = decision.confirmation
    return decision.text if confirmed is None else confirmed.text


def _item(text: str) -> str:
    return _fitted(text, MAX_ITEM_LENGTH)


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
    failures += _outcome(fields.get("outcome"))
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


def _outcome(outcome: object) -> Iterator[str]:
    """Check how it ended. The seed's YAML and cards of earlier rules say nothing of it."""
    if outcome is None:
        return
    if not isinstance(outcome, Mapping):
        yield f"outcome: must be an object, not of type {type(outcome).__name__}."
        return
    settled = outcome.get("settled")
    if not isinstance(settled, str):
        yield "outcome.settled: must be a text."
    else:
        yield from _text("outcome.settled", settled, MAX_ITEM_LENGTH)
    yield from _list("outcome.open", outcome.get("open"), MAX_OPEN)
    if outcome.get("acts") not in ACTORS:
        yield 'outcome.acts: must be "user", "assistant" or "".'


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
