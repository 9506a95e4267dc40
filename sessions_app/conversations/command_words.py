"""Recognise the commands that people can write to the assistant."""

from __future__ import annotations

import re
from dataclasses import dataclass

NAMES = ("remember", "memories", "search", "forget", "reset", "export", "help")
COMMAND = re.compile(rf"\s*/({'|'.join(NAMES)})(?:\s+(.*))?\s*", re.DOTALL | re.IGNORECASE)
LEADING_MENTION = re.compile(r"\s*@\S+\s+")


@dataclass(frozen=True)
class Command:
    """A parsed command.

    ``name`` is one of ``NAMES``; ``argument`` is the text after it, without surrounding spaces.
    """

    name: str
    argument: str = ""


def parse_command(text: str, *, in_group: bool = False) -> Command | None:
    """Return the command in a message, or None.

    An unknown ``/word`` is a normal message. In a group the command may follow the mention that
    addresses the assistant.
    """
    if in_group:
        text = LEADING_MENTION.sub("", text, count=1) if LEADING_MENTION.match(text) else text
    found = COMMAND.fullmatch(text)
    if found is None:
        return None
    return Command(name=found[1].lower(), argument=(found[2] or "").strip())
