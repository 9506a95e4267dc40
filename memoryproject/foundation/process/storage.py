"""A full disk; files that only their owner can open, large uploads, and files of shared times."""

import errno
import fcntl
import hashlib
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, TemporaryFileUploadHandler
from django.utils.translation import gettext_noop
from psycopg.errors import DiskFull, OperationalError

# The message for users in that case.
STORAGE_FULL = gettext_noop(
    "The disk is full: nothing can be stored. Free some space; see docs/operations.md, "
    "“When the disk is full”. Nothing that is stored was harmed."
)
# Below so little space PostgreSQL can't write its log any more, and may stop.
MIN_FREE_BYTES = 16 * 1024 * 1024


def is_disk_full(error: BaseException) -> bool:
    """Return whether this error, or one that caused it, reports that there is no space left."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if isinstance(current, DiskFull):
            return True
        if isinstance(current, OSError) and current.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        current = current.__cause__ or current.__context__
    return False


def is_caused_by_full_disk(error: BaseException, data_dir: Path) -> bool:
    """Return whether a full disk caused the error.

    This includes a database in ``data_dir`` that is gone because it can't write.
    """
    if is_disk_full(error):
        return True
    gone = isinstance(error.__cause__, OperationalError)
    return gone and free_bytes(data_dir) < MIN_FREE_BYTES


def free_bytes(folder: Path) -> int:
    """Return the bytes left for writing; practically unlimited if that is unknown."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 2**63


# Make folders and files that only their owner can open, and let them survive a power cut.

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def folder_make(path: Path) -> None:
    """Create a folder and its missing parents, each with mode 700, whatever the umask.

    Existing folders keep their modes. Raises OSError.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        with suppress(FileExistsError):
            folder.mkdir(mode=FOLDER_MODE)


def folder_sync(path: Path) -> None:
    """Write to the disk which files the folder has. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_make(path: Path, contents: bytes) -> None:
    """Write a file that doesn't exist yet, with mode 600, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(contents)
        file.flush()
        os.fsync(descriptor)


# Large uploads are in files without a name: a killed process leaves nothing behind.


class NamelessFileUploadHandler(TemporaryFileUploadHandler):
    """Take what Django's handler in memory leaves: it is gone once nobody has it open.

    The handler that this one derives from gives its files names below /tmp, where forgetting
    doesn't reach them.
    """

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        FileUploadHandler.new_file(self, *args, **kwargs)
        self.file: Any = UploadedFile(
            tempfile.TemporaryFile(),  # noqa: SIM115 the request closes it
            self.file_name,
            self.content_type,
            0,
            self.charset,
            self.content_type_extra,
        )

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()


# The time of the last run of many named jobs, shared by processes: no database, no new disk space.

SLOTS = 8_192
TIME = struct.Struct("<d")


class SharedTimes:
    """A file of a fixed size, allocated beforehand, with a slot for the time of each name.

    Two names may share a slot: then one of them runs less often than it might.
    """

    def __init__(self, path: Path) -> None:
        """Create the file unless it exists. Raises OSError if that fails."""
        self._path = path
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            if file.seek(0, os.SEEK_END) < SLOTS * TIME.size:
                file.seek(0)
                # Written out, not sparse: later writes then need no new space.
                file.write(bytes(SLOTS * TIME.size))
                file.flush()
                os.fsync(file.fileno())

    def claim(self, name: str, *, now: float, every: float) -> bool:
        """Return whether ``every`` seconds have passed since any process last claimed this name.

        If so, ``now`` is stored as the new time.
        """
        digest = hashlib.sha256(name.encode(errors="replace")).digest()
        place = int.from_bytes(digest[:8], "big") % SLOTS * TIME.size
        with self._path.open("r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(place)
            (last,) = TIME.unpack(file.read(TIME.size))
            # A clock that was set back must not block claims for long.
            if 0 <= now - last < every:
                return False
            file.seek(place)
            file.write(TIME.pack(now))
            return True


@contextmanager
def file_replaced(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file with mode 600 that takes the place of ``path`` once the block has written it.

    So ``path`` is never there by half. Raises OSError.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
