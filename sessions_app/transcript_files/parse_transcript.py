"""The text of transcripts (seed 000), and the reading of files: pure, strict, in linear time.

Any bytes give a result: messages, problems, or both. Reading raises nothing.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

MAX_FILE_SIZE = 16 * 1024 * 1024
MIN_MESSAGES = 2
BOM = "\ufeff"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")

# In other case, indented or with a space before its colon it is no speaker's line.
_ALMOST = re.compile(r"^(?!(?-i:User|Assistant):)[ \t]*(?:user|assistant)[ \t]*:", re.I | re.M)


# The text of a transcript. Knows no rule: any messages go into it and come out the same.

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
        role=ROLES[found[1]], content=_ESCAPED.sub(r"\n\1", content), line=line, spaced=spaced
    )


# Read one file.


class Reader:
    """Read one file, message by message. The problems are complete after the last message.

    ``further``: the number of problems that are not listed.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.further = 0
        self.notes: list[str] = []
        self.count = 0
        self._last: TranscriptMessage | None = None
        self._in_turns = True

    def messages(self, data: bytes) -> Iterator[TranscriptMessage]:
        text = self._decoded(data)
        if text is None:
            return
        self._check_start(lines_before(text))
        ends: Counter[str] = Counter()
        for message in messages_in(text):
            if self._last is not None:
                ends[self._last.content[-1:]] += 1
            self._check(message)
            yield message
        self._check_end()
        self._note_ends({end for end in ends if end and ends[end] == self.count - 1})
        self._note_almost(text)

    def _decoded(self, data: bytes) -> str | None:
        """Return the text even if some bytes aren't UTF-8, to report other problems too."""
        if len(data) > MAX_FILE_SIZE:
            self._add("too_large", most=MAX_FILE_SIZE // 1024 // 1024)
            return None
        try:
            return data.decode("utf-8").removeprefix(BOM)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            if data.startswith(UTF_16):
                self._add("utf_16", line)
                return None
            self._add("not_utf_8", line, byte=error.start + 1)
            return data.decode("utf-8", "replace").removeprefix(BOM)

    def _note_ends(self, ends: set[str]) -> None:
        """Note line ends that all messages have in their content.

        ``ends``: these characters, if any. The last message may lack them, because line ends
        are often missing at the end of a file.
        """
        file = self.file
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
        file = self.file
        found = _ALMOST.search(text)
        if found is not None:
            line = text.count("\n", 0, found.start()) + 1
            self.notes.append(
                f"{file}, line {line}: this is almost a speaker's line, and is read as part of "
                "the message above. Speakers are written User: and Assistant:."
            )

    # The seven format rules of seed 000, and the other reasons to refuse a transcript.

    def _add(self, name: str, line: int | None = None, **values: object) -> None:
        """Note a problem; only the first ones are kept."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem.of(name, self.file, line, **values))
        else:
            self.further += 1

    def _check_start(self, lines: int) -> None:
        """Check how many lines precede the first speaker's line."""
        if lines:
            self._add("lines_first", 1, lines="1 line" if lines == 1 else f"{lines} lines")

    def _check(self, message: TranscriptMessage) -> None:
        self.count += 1
        last, self._last = self._last, message
        if last is None and message.role != USER:
            self._add("starts_with_user", message.line)
        if last is not None and last.role == message.role:
            self._not_in_turns(last, message)
        self._content(message)

    def _check_end(self) -> None:
        """Check the whole file."""
        if self.count < MIN_MESSAGES:
            line = self._last.line if self._last else None
            self._add("too_few_messages", line, count=self.count or "none")
        if self._last is not None and self._last.role != ASSISTANT:
            self._add("ends_with_assistant", self._last.line)

    def _not_in_turns(self, last: TranscriptMessage, message: TranscriptMessage) -> None:
        label, other = LABELS[message.role], LABELS[ASSISTANT if message.role == USER else USER]
        if self._in_turns:
            self._in_turns = False
            self._add("alternates", message.line, other=other)
        self._add("consecutive", message.line, label=label, other=other, last=last.line)

    def _content(self, message: TranscriptMessage) -> None:
        label = LABELS[message.role]
        if not message.spaced:
            self._add("spacing", message.line, label=label)
        if "\x00" in message.content:
            before = message.content.partition("\x00")[0]
            self._add("nul", message.line + before.count("\n"))
        if not message.content.strip():
            self._add("blank_message", message.line, label=label)


# The problems of a transcript: the file, the line, the fault, and its correction.


# Limit of problems listed for one file; further ones are counted.
MAX_PROBLEMS = 100

TEXTS = yaml.safe_load(Path(__file__).with_name("problems.yaml").read_text(encoding="utf-8"))
# The seven format rules of seed 000, by the code of their problem.
RULES = {
    "starts_with_user": 1,
    "alternates": 2,
    "ends_with_assistant": 3,
    "consecutive": 4,
    "too_few_messages": 5,
    "spacing": 6,
    "not_exact": 7,
}


@dataclass(frozen=True)
class Problem:
    """One problem of a transcript.

    ``code`` is one of ``RULES``, or another reason to refuse the file. ``line`` counts from 1.
    It holds no text of the file.
    """

    code: str
    file: str
    what: str
    mend: str
    line: int | None = None

    @classmethod
    def of(cls, name: str, file: str, line: int | None = None, **values: object) -> "Problem":
        """Return the problem of this name in problems.yaml, with the values of its texts."""
        text = TEXTS[name]
        what, mend = (text[part].format(**values) for part in ("what", "mend"))
        return cls(text.get("code", name), file, what, mend, line)

    @property
    def rule(self) -> int | None:
        """Return the format rule (one of seven) that it breaks, if any."""
        return RULES.get(self.code)

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}, line {self.line}"
        rule = "" if self.rule is None else f"rule {self.rule}: "
        return f"{place}: {rule}{self.what} {self.mend}"

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "rule": self.rule}


# Errors that stop a save or an export of transcripts.


class TranscriptsError(Exception):
    """The base of the errors; the text says what was wrong and how to correct it."""


class FolderError(TranscriptsError):
    """The folder can't be used. ``usage``: the folder doesn't exist."""

    def __init__(self, text: str, *, usage: bool = False) -> None:
        super().__init__(text)
        self.usage = usage


class BusyError(TranscriptsError):
    """Another process is already working on it."""


class RefusedError(TranscriptsError):
    """The files have problems: nothing was stored, and they are in their place.

    ``further``: the number of problems that are not listed.
    """

    def __init__(self, problems: Sequence[Problem], further: int = 0) -> None:
        self.problems = list(problems)
        self.further = further
        count = len(self.problems) + further
        super().__init__(
            f"{count} {'problem' if count == 1 else 'problems'}: nothing was stored, and the files "
            "are where they were. Mend them and run it again."
        )


class FaultError(TranscriptsError):
    """A file or the disk failed. The text says which steps were completed."""
