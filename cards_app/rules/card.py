"""The fields of a memory card (seed 001), from the lines of a conversation.

The same lines give the same fields, on every platform.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cards_app.rules.lines import Line, one_line
from cards_app.rules.phrases import asks_or_calls, tells_decision, tells_todo
from cards_app.rules.redact import redact
from cards_app.rules.sentences import is_question, split_sentences
from cards_app.rules.vocabulary import find_entities, find_keywords
from memoryproject.lib.shorten import cut_at_word

ALGORITHM_VERSION = "1.0"
UNTITLED = "Untitled Session"
LONGEST_TITLE = 80
LONGEST_ITEM = 100
MOST_ITEMS = 3
CUT_MARK = "..."


@dataclass(frozen=True)
class CardFields:
    """What a card says, free of personal data. Each text is one line: the title of at most 80
    characters, three bullets, decisions, todos and quotes of at most 100, ten entities and
    keywords."""

    title: str
    summary_bullets: tuple[str, ...]
    decisions: tuple[str, ...]
    todos: tuple[str, ...]
    entities: tuple[str, ...]
    keywords: tuple[str, ...]
    notable_quotes: tuple[str, ...]


def extract_card(lines: Sequence[Line]) -> CardFields:
    """The card of a conversation. Lines without text (a picture alone) say nothing in it."""
    said = redacted_lines(lines)
    return CardFields(
        title=title(said),
        summary_bullets=summary_bullets(said),
        decisions=decisions(said),
        todos=todos(said),
        entities=tuple(find_entities(said)),
        keywords=tuple(find_keywords(said)),
        notable_quotes=notable_quotes(said),
    )


def redacted_lines(lines: Sequence[Line]) -> list[Line]:
    """The lines that have a text, free of personal data: what the functions below take."""
    return [Line(line.role, redact(line.content)) for line in lines if line.content.strip()]


def title(lines: Sequence[Line]) -> str:
    """What the user said first."""
    first = next((line.content for line in lines if line.role == "user"), UNTITLED)
    return _fitted(first, LONGEST_TITLE)


def summary_bullets(lines: Sequence[Line]) -> tuple[str, ...]:
    """The first messages, whoever wrote them, each behind its role in brackets."""
    firsts = lines[:MOST_ITEMS]
    return tuple(_fitted(f"[{line.role}] {line.content}", LONGEST_ITEM) for line in firsts)


def decisions(lines: Sequence[Line]) -> tuple[str, ...]:
    return _items(lines, tells_decision)


def todos(lines: Sequence[Line]) -> tuple[str, ...]:
    """What is to be done. A question isn't a task."""
    return _items(lines, lambda sentence: tells_todo(sentence) and not is_question(sentence))


def notable_quotes(lines: Sequence[Line]) -> tuple[str, ...]:
    """Questions and exclamations."""
    return _items(lines, asks_or_calls)


def _items(lines: Sequence[Line], matches: Callable[[str], bool]) -> tuple[str, ...]:
    """Of the first messages with a sentence that matches: from that sentence to the end."""
    found: list[str] = []
    for line in lines:
        sentences = split_sentences(line.content)
        start = next((each.start for each in sentences if matches(each.text)), None)
        if start is not None:
            found.append(_fitted(line.content[start:], LONGEST_ITEM))
        if len(found) == MOST_ITEMS:
            break
    return tuple(found)


def _fitted(text: str, longest: int) -> str:
    """The text on one line, within its length, and still free of personal data: joining lines
    and cutting can make a telephone number of what was none."""
    shown = cut_at_word(one_line(text), longest, mark=CUT_MARK)
    while (clean := redact(shown)) != shown:
        shown = cut_at_word(clean, longest, mark=CUT_MARK)
    return shown
