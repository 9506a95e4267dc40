"""The seven format rules of seed 000, and the other reasons to refuse a transcript."""

from __future__ import annotations

from sessions_app.transcript_files.problems import Problems
from sessions_app.transcript_files.transcript_text import ASSISTANT, LABELS, USER, TranscriptMessage

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
