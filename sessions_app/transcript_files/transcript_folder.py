"""Access the folder of batches. Only files with our own names are ever touched."""

import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sessions_app.transcript_files.continuity import Signs
from sessions_app.transcript_files.parse_transcript import (
    MAX_FILE_SIZE,
    BusyError,
    FolderError,
    Problem,
    Reader,
    TranscriptMessage,
)

# The number of a text that came without one; batches count from 1.
NO_NUMBER = 0
ONE_TEXT = "The text"

# The state of a file: its inode, size and time of change.
Stamp = tuple[int, int, int]


@dataclass
class Listing:
    """The batches by number and name, the problems of their names, and the other files.

    Other files are left alone.
    """

    batches: list[tuple[int, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)


class BatchFolder:
    """A folder of ``chat_memory_batch_NNN.txt``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def label(self, name: str) -> str:
        """Return what problems and notes call a file."""
        return name

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock on the folder until the block ends. Raises BusyError and FolderError.

        The lock ends with the process.
        """
        descriptor = self._open()
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyError(
                    f"Another chat_memory is at work in {self.path}: run it again when it is done."
                ) from None
            except OSError as error:
                raise FolderError(f"{self.path} can't be locked: {error.strerror}.") from error
            yield
        finally:
            os.close(descriptor)

    def listing(self) -> Listing:
        """Return the folder's files, by number. Raises FolderError."""
        found = Listing()
        os.close(self._open())
        try:
            with os.scandir(self.path) as entries:
                for entry in entries:
                    self._sort(entry, found)
        except OSError as error:
            raise FolderError(f"{self.path} can't be read: {error.strerror}.") from error
        found.batches.sort()
        found.strangers.sort()
        found.problems.sort(key=lambda problem: problem.file)
        found.problems += numbering_problems(found.batches)
        return found

    def read(self, name: str) -> tuple[bytes, Stamp]:
        """Return the file's bytes, at most one more than allowed, and its state at the read.

        Raises OSError, also if it is no regular file.
        """
        descriptor = os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(0, "it is no plain file")
            data = file.read(MAX_FILE_SIZE + 1)
            return data, _stamp(os.fstat(descriptor))

    def remove(self, name: str, stamp: Stamp) -> bool:
        """Remove a file if it is unchanged since it was read; return whether it was.

        A missing file counts as removed. Raises OSError.
        """
        path = self.path / name
        try:
            if _stamp(os.lstat(path)) != stamp:
                return False
            path.unlink()
        except FileNotFoundError:
            pass
        return True

    def sync(self) -> None:
        """Flush the removals to the disk. Raises OSError."""
        descriptor = self._open()
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            raise FolderError(
                f"There is no folder {self.path}. Put the batches there (mkdir -p {self.path} "
                "makes it), or name their folder with --dir.",
                usage=True,
            ) from None
        except NotADirectoryError:
            raise FolderError(f"{self.path} is no folder.", usage=True) from None
        except OSError as error:
            raise FolderError(f"{self.path} can't be read: {error.strerror}.") from error

    def _sort(self, entry: os.DirEntry[str], found: Listing) -> None:
        own_name = _NAME.fullmatch(entry.name)
        name = entry.name.encode("utf-8", "backslashreplace").decode("utf-8")
        if own_name is None and _LIKE.fullmatch(entry.name):
            found.problems.append(Problem.of("file_name", name))
        elif own_name is None:
            found.strangers.append(name)
        elif not entry.is_file(follow_symlinks=False):
            found.problems.append(Problem.of("no_file", name))
        else:
            found.batches.append((int(own_name[1]), name))


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_ino, found.st_size, found.st_mtime_ns


class OneText(BatchFolder):
    """A text that came without a file: a folder that holds it alone, and is on no disk.

    Its number is NO_NUMBER, and problems and notes don't name a file.
    """

    def __init__(self, text: str) -> None:
        super().__init__(Path(batch_name(1)))
        self._data = text.encode("utf-8")

    def label(self, name: str) -> str:
        return ONE_TEXT

    @contextmanager
    def locked(self) -> Iterator[None]:
        yield

    def listing(self) -> Listing:
        return Listing(batches=[(NO_NUMBER, self.path.name)])

    def read(self, name: str) -> tuple[bytes, Stamp]:
        return self._data, (0, len(self._data), 0)

    def remove(self, name: str, stamp: Stamp) -> bool:
        return True

    def sync(self) -> None:
        """Nothing is on the disk."""


# Names of batches: ``chat_memory_batch_001.txt``, and so on without a gap.

_NAME = re.compile(r"chat_memory_batch_([0-9]{3,9})\.txt")
_LIKE = re.compile(r"chat_memory_batch.*\.txt", re.IGNORECASE | re.DOTALL)


def batch_name(number: int) -> str:
    return f"chat_memory_batch_{number:03}.txt"


def numbering_problems(numbers: Iterable[tuple[int, str]]) -> Iterator[Problem]:
    """Return the problems of these files' numbers, given in their order."""
    last: int | None = None
    for number, name in numbers:
        if number == 0:
            yield Problem.of("number", name)
        elif number == last:
            yield Problem.of("number_twice", name, number=number)
        elif last is not None and number > last + 1:
            yield Problem.of("number_missing", name, missing=_missing(last + 1, number - 1))
        last = number


def _missing(first: int, last: int) -> str:
    if first == last:
        return f"{batch_name(first)} is missing"
    return f"{batch_name(first)} to {batch_name(last)} are missing"


# Check all files of a folder before anything is stored.


# Called with the current step, the amount done, and the total.
Progress = Callable[[str, int, int], None]

CHECKING = "Checking"
MAX_PROBLEMS = 1_000
MAX_NOTES = 100


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

    ``signs`` has those of each message of all files; ``further``: the number of
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
        data, stamp = folder.read(name)
    except OSError as error:
        check.add_problems([Problem.of("unreadable", name, why=error.strerror)])
        return
    reader = Reader(folder.label(name))
    for message in reader.messages(data):
        check.signs.add_message(message.role, message.content)
    check.add_problems(reader.problems, reader.further)
    check.notes += reader.notes[: MAX_NOTES - len(check.notes)]
    digest = hashlib.sha256(data).hexdigest()
    check.files.append(BatchFile(number, name, digest, len(data), reader.count, stamp))


class ChangedError(Exception):
    """A file changed after it was checked; ``problem`` names it."""

    def __init__(self, name: str) -> None:
        self.problem = Problem.of("changed_meanwhile", name)
        super().__init__(str(self.problem))


def file_again(*, folder: BatchFolder, file: BatchFile) -> bytes:
    """Return the bytes of a checked file. Raises ChangedError."""
    try:
        data, stamp = folder.read(file.name)
    except OSError:
        raise ChangedError(file.name) from None
    if stamp != file.stamp or hashlib.sha256(data).hexdigest() != file.sha256:
        raise ChangedError(file.name)
    return data


def messages_again(
    *, folder: BatchFolder, files: Sequence[BatchFile]
) -> Iterator[tuple[BatchFile, TranscriptMessage]]:
    """Yield the messages of checked files, in order. Raises ChangedError."""
    for file in files:
        for message in Reader(file.name).messages(file_again(folder=folder, file=file)):
            yield file, message
