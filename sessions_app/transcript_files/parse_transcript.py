"""Read and write the files of seed 000: pure, strict, in linear time.

Any bytes give a result: messages, problems, or both. Reading raises nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sessions_app.transcript_files.exchanges import (
    ASSISTANT,
    LABELS,
    USER,
    TranscriptMessage,
    lines_before,
    message_text,
    messages_in,
)
from sessions_app.transcript_files.problems import Problem, Problems

MAX_FILE_SIZE = 16 * 1024 * 1024
BOM = "\ufeff"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")

# In other case, indented or with a space before its colon it is no speaker's line.
_ALMOST = re.compile(r"^(?!(?-i:User|Assistant):)[ \t]*(?:user|assistant)[ \t]*:", re.I | re.M)


class TranscriptError(ValueError):
    """The messages are no transcript; ``problems`` holds the reasons."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True)
class Parsed:
    """The result of reading a file.

    ``further``: the number of problems that are not listed. ``notes``: text that is allowed but
    may be a mistake.
    """

    messages: list[TranscriptMessage]
    problems: list[Problem]
    further: int = 0
    notes: list[str] | None = None


class Reader:
    """Read one file, message by message. The problems are complete after the last message."""

    def __init__(self, file: str) -> None:
        self.problems = Problems(file)
        self.notes: list[str] = []
        self.count = 0

    def messages(self, data: bytes) -> Iterator[TranscriptMessage]:
        text = self._decoded(data)
        if text is None:
            return
        rules = Rules(self.problems)
        rules.begin(lines_before=lines_before(text))
        ends: Counter[str] = Counter()
        last = ""
        for message in messages_in(text):
            rules.look(message)
            self.count += 1
            ends[last] += 1
            last = message.content[-1:]
            yield message
        rules.end()
        self._note_ends({end for end in ends if end and ends[end] == self.count - 1})
        self._note_almost(text)

    def _decoded(self, data: bytes) -> str | None:
        """Return the text even if some bytes aren't UTF-8, to report other problems too."""
        if len(data) > MAX_FILE_SIZE:
            self.problems.add(
                "too_large",
                f"The transcript is larger than {MAX_FILE_SIZE // 1024 // 1024} MiB.",
                "Split it into several.",
            )
            return None
        try:
            return data.decode("utf-8").removeprefix(BOM)
        except UnicodeDecodeError as error:
            is_utf16 = data.startswith(UTF_16)
            self.problems.add(
                "not_exact",
                "The transcript is in UTF-16, not in UTF-8."
                if is_utf16
                else f"Byte {error.start + 1} of the transcript is not UTF-8.",
                "Save it as UTF-8 from its source, so that every character stays as it was.",
                line=data.count(b"\n", 0, error.start) + 1,
            )
            return None if is_utf16 else data.decode("utf-8", "replace").removeprefix(BOM)

    def _note_ends(self, ends: set[str]) -> None:
        """Note line ends that all messages have in their content.

        ``ends``: these characters, if any. The last message may lack them, because line ends
        are often missing at the end of a file.
        """
        file = self.problems.file
        if "\r" in ends:
            self.notes.append(
                f"{file}: every message ends with a carriage return, which is kept as part of "
                "it. If an editor put them there, save it with Unix line ends."
            )
        if "\n" in ends:
            self.notes.append(
                f"{file}: every message is followed by a blank line, which is kept as part of "
                "it. If these lines only stand between messages, remove them."
            )

    def _note_almost(self, text: str) -> None:
        file = self.problems.file
        found = _ALMOST.search(text)
        if found is not None:
            line = text.count("\n", 0, found.start()) + 1
            self.notes.append(
                f"{file}, line {line}: this is almost a speaker's line, and is read as part of "
                "the message above. Speakers are written User: and Assistant:."
            )


def parse(data: bytes, *, file: str = "transcript") -> Parsed:
    """Return all messages of a file's bytes, and all problems with it."""
    reader = Reader(file)
    messages = list(reader.messages(data))
    problems = reader.problems
    return Parsed(messages, problems.found, problems.further, reader.notes)


def write(messages: Iterable[tuple[str, str]]) -> bytes:
    """Return messages, each a role (user or assistant) and its content, as a file's bytes.

    Raises TranscriptError if they are no transcript.
    """
    problems = Problems("transcript")
    rules = Rules(problems)
    texts = []
    for number, (role, content) in enumerate(messages, start=1):
        rules.look(TranscriptMessage(role=role, content=content, line=number))
        texts.append(message_text(role=role, content=content))
    rules.end()
    if problems:
        raise TranscriptError(problems.found)
    try:
        return "".join(texts).encode("utf-8")
    except UnicodeEncodeError:
        what = "There is half of a character (a lone surrogate)."
        problems.add("not_exact", what, "Write the whole character.")
        raise TranscriptError(problems.found) from None


# The seven format rules of seed 000, and the other reasons to refuse a transcript.

MIN_MESSAGES = 2


class Rules:
    """Check the messages of one file in order; call ``end`` after the last."""

    def __init__(self, problems: Problems) -> None:
        self.count = 0
        self._problems = problems
        self._last: TranscriptMessage | None = None
        self._in_turns = True

    def begin(self, *, lines_before: int) -> None:
        """Check the start. ``lines_before``: how many lines precede the first speaker's line."""
        if lines_before:
            self._problems.add(
                "starts_with_user",
                "A transcript must start with User:, but this one has "
                f"{_lines(lines_before)} before that.",
                "Remove what stands there, or put User: and a space before it.",
                line=1,
            )

    def look(self, message: TranscriptMessage) -> None:
        """Check one message."""
        self.count += 1
        last, self._last = self._last, message
        if last is None and message.role != USER:
            self._problems.add(
                "starts_with_user",
                "A transcript must start with User:, not with Assistant:.",
                "Put the user's message before it, or move this answer to the end of the "
                "transcript before.",
                line=message.line,
            )
        if last is not None and last.role == message.role:
            self._not_in_turns(last, message)
        self._content(message)

    def end(self) -> None:
        """Check the whole file."""
        if self.count < MIN_MESSAGES:
            self._problems.add(
                "too_few_messages",
                f"A transcript has at least 2 messages, User: and its Assistant:; this one has "
                f"{self.count or 'none'}.",
                "Add the rest of the exchange, or leave it out.",
                line=self._last.line if self._last else None,
            )
        if self._last is not None and self._last.role != ASSISTANT:
            self._problems.add(
                "ends_with_assistant",
                "A transcript must end with Assistant:, but its last message is a User:.",
                "Add the answer, or move this message to the next transcript.",
                line=self._last.line,
            )

    def _not_in_turns(self, last: TranscriptMessage, message: TranscriptMessage) -> None:
        label, other = LABELS[message.role], LABELS[ASSISTANT if message.role == USER else USER]
        if self._in_turns:
            self._in_turns = False
            self._problems.add(
                "alternates",
                f"User: and Assistant: must alternate; from here on they don't: {other}: should "
                f"be next.",
                "Each place is told below; mend all of them.",
                line=message.line,
            )
        self._problems.add(
            "consecutive",
            f"This {label}: follows the {label}: of line {last.line}: no two messages in a row "
            "may be by the same speaker.",
            f"Add the {other}: that belongs between them. If this line is part of the message "
            "above, put a backslash before it.",
            line=message.line,
        )

    def _content(self, message: TranscriptMessage) -> None:
        label = LABELS[message.role]
        if not message.spaced:
            self._problems.add(
                "spacing",
                f"One space must follow {label}:.",
                f'Write "{label}: " and then the message. If this line is part of the message '
                "above, put a backslash before it.",
                line=message.line,
            )
        if "\x00" in message.content:
            before = message.content.partition("\x00")[0]
            self._problems.add(
                "not_exact",
                "There is a NUL character, which the database can't keep.",
                "Remove it.",
                line=message.line + before.count("\n"),
            )
        if not message.content.strip():
            self._problems.add(
                "blank_message",
                f"This {label}: has no text: every message has a minimum size.",
                "Write what was said, or remove the exchange.",
                line=message.line,
            )


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
