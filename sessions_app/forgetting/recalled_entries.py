"""Read the entries of a replay record: what was recalled for an answer. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from memoryproject.foundation.retrieval.fragments import MARK
from sessions_app.recall.facade import CLIENT_NAME, CLIENTS_MEMORY, MEMORY

# The neighbours of a recalled message, by their names in the replay record.
BESIDE = ("before", "after")
# How a card is named in the replay record.
CARDS = "cards"


def objects_named(recalled: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the ids of what was recalled, and of what stood beside it."""
    for entry in recalled:
        yield str(entry.get("id"))
        if entry.get("source") == CARDS:
            yield str(entry.get("session_id"))
        yield from (str(entry[name].get("message_id")) for name in BESIDE if name in entry)


def entries_of(recalled: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what was recalled, each with what stood beside it."""
    for entry in recalled:
        yield entry
        yield from (entry[name] for name in BESIDE if name in entry)


def names_removed(
    prompt: Sequence[dict[str, Any]],
    recalled: Sequence[dict[str, Any]],
    *,
    goes: Callable[[dict[str, Any]], bool],
) -> list[dict[str, Any]]:
    """Return a prompt without the names of the clients whose erased memories it held.

    ``goes`` says of an entry whether its memory was erased.
    """
    named = [entry for entry in recalled if CLIENT_NAME in entry]
    staying = {entry[CLIENT_NAME] for entry in named if not goes(entry)}
    lines = list(prompt)
    for name in {entry[CLIENT_NAME] for entry in named if goes(entry)}:
        # Beside a memory that stays, only the label of what is cut.
        cut = rf"(?=[^()\n]+\) {re.escape(MARK)})" if name in staying else ""
        label = re.compile(rf"\({re.escape(CLIENTS_MEMORY + name)}, {cut}")
        for place, line in enumerate(lines):
            if line.get("role") == "system" and line["content"]:
                content = label.sub(f"({MEMORY}, ", line["content"])
                lines[place] = {**line, "content": content}
    return lines
