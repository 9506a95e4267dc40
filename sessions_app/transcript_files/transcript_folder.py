"""Access the folder of batches. Only files with our own names are ever touched."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sessions_app.transcript_files.batch_names import (
    batch_number,
    looks_like_a_batch,
    numbering_problems,
)
from sessions_app.transcript_files.errors import BusyError, FolderError
from sessions_app.transcript_files.parse_transcript import MAX_FILE_SIZE
from sessions_app.transcript_files.problems import Problem

# The number of a text that came without one; batches count from 1.
NO_NUMBER = 0
ONE_TEXT = "The text"

# The state of a file: its inode, size and time of change.
Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Content:
    """A file's bytes, at most one more than allowed, and the state at the read."""

    data: bytes
    stamp: Stamp


@dataclass
class Listing:
    """The batches by number and name, the problems of their names, and the other files.

    Other files are left alone.
    """

    batches: list[tuple[int, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)


class BatchFolder:
    """A folder of ``chat_memory_batch_NNN.txt``.

    ``is_one_text``: it holds one text that came without a name. Its number is NO_NUMBER, and
    problems and notes don't name a file.
    """

    def __init__(self, path: Path, *, is_one_text: bool = False) -> None:
        self.path = path
        self.is_one_text = is_one_text

    def label(self, name: str) -> str:
        """Return what problems and notes call a file."""
        return ONE_TEXT if self.is_one_text else name

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
        if self.is_one_text:
            found.batches = [(NO_NUMBER, name) for _, name in found.batches]
        else:
            found.problems += numbering_problems(found.batches)
        return found

    def read(self, name: str) -> Content:
        """Return the file's content. Raises OSError, also if it is no regular file."""
        descriptor = os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(0, "it is no plain file")
            data = file.read(MAX_FILE_SIZE + 1)
            return Content(data, _stamp(os.fstat(descriptor)))

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
        number = batch_number(entry.name)
        name = entry.name.encode("utf-8", "backslashreplace").decode("utf-8")
        if number is None and looks_like_a_batch(entry.name):
            what = "This is not quite the name of a batch."
            mend = "Name it chat_memory_batch_001.txt, with its number in three digits or more."
            found.problems.append(Problem("file_name", name, what, mend))
        elif number is None:
            found.strangers.append(name)
        elif not entry.is_file(follow_symlinks=False):
            what = "This is no plain file, but a link, a folder or a device."
            mend = "Put the file itself there."
            found.problems.append(Problem("no_file", name, what, mend))
        else:
            found.batches.append((number, name))


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_ino, found.st_size, found.st_mtime_ns
