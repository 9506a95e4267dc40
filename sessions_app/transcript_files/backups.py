"""Back up saved batches: write, sync and read back the copies, and only then name them.

The copies hold people's messages: forgetting sweeps them, and they are deleted after their
retention.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

from memoryproject.foundation.process.storage import file_make, file_replaced, folder_sync
from sessions_app.transcript_files.parse_transcript import FaultError, messages_in
from sessions_app.transcript_files.transcript_folder import (
    BatchFile,
    BatchFolder,
    ChangedError,
    Progress,
    file_again,
)

MANIFEST = "manifest.json"
PART = ".part"
BLOCK = 1024 * 1024
_TIME = "%Y%m%dT%H%M%SZ"

BACKING_UP = "Backing up"
VERIFYING = "Verifying the backup"


class BackupError(FaultError):
    """There is no verified backup; the text says why."""


def backup_name(now: datetime) -> str:
    """Return a unique name for a backup, which contains its time."""
    return f"{now.astimezone(timezone.utc).strftime(_TIME)}-{uuid4().hex[:12]}"


class Backups:
    """The folder of backups; each is a folder in it with the files and a manifest."""

    def __init__(self, root: Path, *, is_preview: bool = False) -> None:
        """is_preview: what would be removed is only counted."""
        self.root = root
        self._is_preview = is_preview

    def write(
        self, *, name: str, files: Sequence[BatchFile], folder: BatchFolder, progress: Progress
    ) -> Path:
        """Copy files, read the copies back, and publish the backup. Raises BackupError.

        After an error there is no backup of this name.
        """
        try:
            with self._locked():
                return self._write(name, files, folder, progress)
        except ChangedError as error:
            raise BackupError(str(error)) from error
        except OSError as error:
            raise BackupError(
                f"The backup can't be written below {self.root}: {error.strerror or error}."
            ) from error

    def holds(self, name: str, file: BatchFile) -> bool:
        """Return whether a backup holds exactly this file; reads it back."""
        try:
            return _sha256(self.root / name / file.name) == file.sha256
        except OSError:
            return False

    def prune(self, *, before: datetime) -> int:
        """Remove the backups from before a time, and what killed runs left; return how many.

        The count is of backups. Raises OSError.
        """
        if not self.root.is_dir():
            return 0
        with self._locked():
            old = [path for path in self._all() if _made_at(path, default=before) < before]
            for path in old:
                shutil.rmtree(path)
            return len(old)

    def remove(self, names: Iterable[str]) -> int:
        """Remove whole backups; return how many files they held. Raises OSError."""
        files = 0
        for path in self._named(names):
            files += sum(1 for file in path.iterdir() if file.name != MANIFEST)
            if not self._is_preview:
                shutil.rmtree(path)
                folder_sync(self.root)
        return files

    def sweep(self, names: Iterable[str], *, holds: Callable[[str], bool]) -> int:
        """Remove the files with a message that ``holds`` accepts; return how many.

        ``holds`` finds the content to forget. Raises OSError.
        """
        gone = 0
        for path in self._named(names):
            found = [file.name for file in path.iterdir() if _contains(file, holds)]
            gone += len(found)
            if self._is_preview or not found:
                continue
            for name in found:
                (path / name).unlink()
            _leave_out(path / MANIFEST, set(found))
            folder_sync(path)
        return gone

    def _named(self, names: Iterable[str]) -> list[Path]:
        """Return those of these backups that exist, complete or left by a killed run."""
        paths = [self.root / f"{name}{end}" for name in sorted(set(names)) for end in ("", PART)]
        return [path for path in paths if path.is_dir()]

    def _all(self) -> list[Path]:
        return sorted(path for path in self.root.iterdir() if path.is_dir())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Allow one process at a time: an unfinished backup was then left by a killed run."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root.chmod(0o700)
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            for path in self._all():
                if path.name.endswith(PART):
                    shutil.rmtree(path)
            yield
        finally:
            os.close(descriptor)

    def _write(
        self, name: str, files: Sequence[BatchFile], folder: BatchFolder, progress: Progress
    ) -> Path:
        part = self.root / f"{name}{PART}"
        part.mkdir(mode=0o700)
        try:
            for done, file in enumerate(files):
                progress(BACKING_UP, done, len(files))
                file_make(part / file.name, file_again(folder=folder, file=file))
            progress(BACKING_UP, len(files), len(files))
            manifest = {"files": [_entry(file) for file in files]}
            file_make(part / MANIFEST, json.dumps(manifest, indent=1).encode())
            folder_sync(part)
            _verify(part, files, progress)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        place = self.root / name
        part.rename(place)
        folder_sync(self.root)
        return place


def _entry(file: BatchFile) -> dict[str, Any]:
    return {"name": file.name, "size": file.size, "sha256": file.sha256}


def _verify(path: Path, files: Sequence[BatchFile], progress: Progress) -> None:
    """Read all copies back. Raises BackupError and OSError."""
    written = json.loads((path / MANIFEST).read_bytes())["files"]
    if written != [_entry(file) for file in files]:
        raise BackupError(f"The manifest of the backup {path} was not written as it is.")
    for done, entry in enumerate(written):
        progress(VERIFYING, done, len(written))
        if _sha256(path / entry["name"]) != entry["sha256"]:
            raise BackupError(f"{entry['name']} in the backup {path} is not what was written.")
    progress(VERIFYING, len(written), len(written))


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _made_at(path: Path, *, default: datetime) -> datetime:
    try:
        made = datetime.strptime(path.name.partition("-")[0], _TIME)
    except ValueError:
        # Not one of ours: it stays.
        return default
    return made.replace(tzinfo=timezone.utc)


def _contains(file: Path, holds: Callable[[str], bool]) -> bool:
    if file.name == MANIFEST:
        return False
    text = file.read_bytes().decode("utf-8", errors="replace")
    return any(holds(message.content) for message in messages_in(text))


def _leave_out(manifest: Path, names: set[str]) -> None:
    """Remove the checksums of forgotten files from the manifest.

    A killed run may have left some.
    """
    if not manifest.is_file():
        return
    kept = [
        each for each in json.loads(manifest.read_bytes())["files"] if each["name"] not in names
    ]
    with file_replaced(manifest) as fresh:
        fresh.write(json.dumps({"files": kept}, indent=1).encode())
