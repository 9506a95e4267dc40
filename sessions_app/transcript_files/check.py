"""Check all files of a folder before anything is stored."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from sessions_app.transcript_files.continuity import Signs
from sessions_app.transcript_files.parse_transcript import Reader
from sessions_app.transcript_files.problems import Problem
from sessions_app.transcript_files.transcript_folder import BatchFolder, Stamp
from sessions_app.transcript_files.transcript_text import TranscriptMessage

# Called with the current step, the amount done, and the total.
Progress = Callable[[str, int, int], None]

CHECKING = "Checking"
MAX_PROBLEMS = 1_000
MAX_NOTES = 100
# The characters that str.strip() removes.
WHITE_SPACE = "".join(character for character in map(chr, range(0x1_0000)) if character.isspace())
_WITHOUT_SPACE = dict.fromkeys(map(ord, WHITE_SPACE))


def no_progress(_step: str, _done: int, _total: int) -> None:
    """Ignore the progress."""


@dataclass(frozen=True)
class BatchFile:
    """A checked file, and its state at the check."""

    number: int
    name: str
    sha256: str
    size: int
    messages: int
    stamp: Stamp


@dataclass
class Check:
    """The result of a check.

    ``signs`` has those of each message of all files; see ``sign_of``. ``further``: the number of
    problems that are not listed.
    """

    files: list[BatchFile] = field(default_factory=list)
    signs: Signs = field(default_factory=Signs)
    problems: list[Problem] = field(default_factory=list)
    further: int = 0
    notes: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    def add_problems(self, problems: Sequence[Problem], further: int = 0) -> None:
        room = MAX_PROBLEMS - len(self.problems)
        self.problems += problems[:room]
        self.further += further + len(problems[room:])


def sign_of(*, role: str, content: str) -> bytes:
    """Return the same sign for messages of the same role and content, and for no others."""
    return role[:1].encode() + hashlib.sha256(content.encode("utf-8")).digest()


def loose_sign_of(*, role: str, content: str) -> bytes:
    """Return the same sign also where only white space, line ends or the Unicode form differ."""
    text = unicodedata.normalize("NFC", content).translate(_WITHOUT_SPACE)
    return sign_of(role=role, content=text)


def folder_check(*, folder: BatchFolder, progress: Progress = no_progress) -> Check:
    """Read every file once. The result holds the problems. Raises FolderError."""
    listing = folder.listing()
    check = Check(strangers=listing.strangers)
    check.add_problems(listing.problems)
    for done, (number, name) in enumerate(listing.batches):
        progress(CHECKING, done, len(listing.batches))
        _check_file(folder, number, name, check)
    progress(CHECKING, len(listing.batches), len(listing.batches))
    return check


def _check_file(folder: BatchFolder, number: int, name: str, check: Check) -> None:
    try:
        content = folder.read(name)
    except OSError as error:
        what = f"The file can't be read: {error.strerror}."
        mend = "See to it that it can, and run it again."
        check.add_problems([Problem("unreadable", name, what, mend)])
        return
    reader = Reader(folder.label(name))
    for message in reader.messages(content.data):
        check.signs.add(
            sign_of(role=message.role, content=message.content),
            loose_sign_of(role=message.role, content=message.content),
        )
    check.add_problems(reader.problems.found, reader.problems.further)
    check.notes += reader.notes[: MAX_NOTES - len(check.notes)]
    digest = hashlib.sha256(content.data).hexdigest()
    check.files.append(
        BatchFile(number, name, digest, len(content.data), reader.count, content.stamp)
    )


class ChangedError(Exception):
    """A file changed after it was checked; ``problem`` names it."""

    def __init__(self, name: str) -> None:
        self.problem = Problem(
            "changed_meanwhile",
            name,
            "The file was changed or removed while it was being saved.",
            "Run it again when nobody writes to it.",
        )
        super().__init__(str(self.problem))


def file_again(*, folder: BatchFolder, file: BatchFile) -> bytes:
    """Return the bytes of a checked file. Raises ChangedError."""
    try:
        content = folder.read(file.name)
    except OSError:
        raise ChangedError(file.name) from None
    if content.stamp != file.stamp or hashlib.sha256(content.data).hexdigest() != file.sha256:
        raise ChangedError(file.name)
    return content.data


def messages_again(
    *, folder: BatchFolder, files: Sequence[BatchFile]
) -> Iterator[tuple[BatchFile, TranscriptMessage]]:
    """Yield the messages of checked files, in order. Raises ChangedError."""
    for file in files:
        for message in Reader(file.name).messages(file_again(folder=folder, file=file)):
            yield file, message
