r"""The text of a transcript. Knows no rule: any messages go into it and come out the same.

A message is ``User: `` or ``Assistant: ``, its content, and one line feed. Lines end with a
line feed alone: a carriage return is part of the content. A further line of the content that
would read as a speaker's (``^\\*(User|Assistant):``) gains one leading backslash; reading
takes one away. The end of the file ends the last message, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

USER = "user"
ASSISTANT = "assistant"
LABELS = {USER: "User", ASSISTANT: "Assistant"}
ROLES = {label: role for role, label in LABELS.items()}

# "^" is the start of the text or follows a line feed: no other character ends a line.
SPEAKER = re.compile(r"^(User|Assistant):", re.MULTILINE)
# Both are anchored to one line feed, and look at each backslash once.
_LIKE_SPEAKER = re.compile(r"\n(\\*(?:User|Assistant):)")
_ESCAPED = re.compile(r"\n\\(\\*(?:User|Assistant):)")


@dataclass(frozen=True)
class TranscriptMessage:
    """``role``: user or assistant. ``line``: where it begins in its file, from 1; 0 where it
    comes from none. ``spaced``: one space follows the colon, as it has to."""

    role: str
    content: str
    line: int = 0
    spaced: bool = True


def message_text(*, role: str, content: str) -> str:
    """A message as it stands in a file."""
    escaped = _LIKE_SPEAKER.sub(r"\n\\\1", content)
    return f"{LABELS[role]}: {escaped}\n"


def messages_in(text: str) -> Iterator[TranscriptMessage]:
    """The messages of a text, in one pass. What stands before the first speaker's line is
    none of them: see ``lines_before``."""
    line, counted = 1, 0
    found = SPEAKER.search(text)
    while found is not None:
        following = SPEAKER.search(text, found.end())
        line += text.count("\n", counted, found.start())
        counted = found.start()
        yield _message(text, found, following.start() if following else len(text), line)
        found = following


def lines_before(text: str) -> int:
    """How many lines stand before the first speaker's."""
    found = SPEAKER.search(text)
    before = text if found is None else text[: found.start()]
    return before.count("\n") + (1 if before and not before.endswith("\n") else 0)


def _message(text: str, found: re.Match[str], end: int, line: int) -> TranscriptMessage:
    start = found.end()
    spaced = text.startswith(" ", start)
    # The line feed that ends the message may be missing at the end of the file.
    end -= text.endswith("\n", start, end)
    content = text[start + spaced : end]
    return TranscriptMessage(
        role=ROLES[found[1]],
        content=_ESCAPED.sub(r"\n\1", content),
        line=line,
        spaced=spaced,
    )
