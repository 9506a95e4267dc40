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
    """A message of a transcript.

    ``role``: user or assistant. ``line``: its first line in the file, from 1; 0 if it comes
    from no file. ``spaced``: one space follows the colon, as required.
    """

    role: str
    content: str
    line: int = 0
    spaced: bool = True


def message_text(*, role: str, content: str) -> str:
    """Return a message as it is written in a file."""
    escaped = _LIKE_SPEAKER.sub(r"\n\\\1", content)
    return f"{LABELS[role]}: {escaped}\n"


def messages_in(text: str) -> Iterator[TranscriptMessage]:
    """Yield the messages of a text, in one pass.

    The text before the first speaker's line is no message: see ``lines_before``.
    """
    line, counted = 1, 0
    found = SPEAKER.search(text)
    while found is not None:
        following = SPEAKER.search(text, found.end())
        line += text.count("\n", counted, found.start())
        counted = found.start()
        yield _message(text, found, following.start() if following else len(text), line)
        found = following


def lines_before(text: str) -> int:
    """Return how many lines precede the first speaker's line."""
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
