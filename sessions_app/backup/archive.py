"""The archive of a backup, independent of Django.

It is a zip file with the rows of each table in the format of PostgreSQL's COPY, the keys, and a
manifest with a checksum for each file.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sessions_app.backup.naming import name_file

FORMAT = 1
MANIFEST = "manifest.json"
BLOCK = 1024 * 1024
MAX_MANIFEST_SIZE = 16 * BLOCK
OWNER_ONLY = 0o600


# The errors that zipfile raises for damaged files, in addition to its own BadZipFile.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    KeyError,
)


class ArchiveError(Exception):
    """The archive can't be written or trusted; the text states the reason."""


@dataclass(frozen=True)
class Member:
    """A file of the archive with its uncompressed size and its checksum.

    ``rows`` and ``columns`` are those of a table.
    """

    name: str
    size: int
    sha256: str
    rows: int = 0
    columns: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Manifest:
    """The contents of the archive.

    ``sequences``: by name, the last value and whether it was used. ``migrations``: the applied
    ones as "app.name".
    """

    product_version: str
    created_at: str
    postgres: str
    migrations: list[str]
    tables: dict[str, Member]
    sequences: dict[str, tuple[int, bool]]
    keys: dict[str, Member] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())


def table_member(table: str) -> str:
    return f"tables/{table}.copy"


def key_member(key: str) -> str:
    return f"keys/{key}"


class ArchiveWriter:
    """Write an archive under a temporary name next to ``path``.

    Only ``publish`` gives it its final name. Without that, the end of the block removes it.
    """

    def __init__(self, path: Path) -> None:
        """Create the temporary file. Raises ArchiveError if ``path`` exists or that fails."""
        if path.exists():
            raise ArchiveError(f"{path} exists already: choose another name.")
        self.path = path
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            descriptor = os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        except OSError as error:
            raise ArchiveError(f"{path} can't be written: {error.strerror}.") from error
        self._file = os.fdopen(descriptor, "w+b")
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED, compresslevel=6)

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, *_: object) -> None:
        # Closing writes the zip's end, which a file that is removed doesn't need.
        with suppress(OSError, ValueError):
            self._zip.close()
        with suppress(OSError):
            self._file.close()
        self._temporary.unlink(missing_ok=True)

    def add(
        self, name: str, blocks: Iterable[bytes], *, columns: list[str] | None = None
    ) -> Member:
        """Write one file. Each line feed ends a row: COPY's text format escapes all others."""
        digest = hashlib.sha256()
        size = rows = 0
        try:
            with self._zip.open(name, "w", force_zip64=True) as member:
                for block in blocks:
                    member.write(block)
                    digest.update(block)
                    size += len(block)
                    rows += block.count(b"\n")
        except OSError as error:
            raise self._unwritable(error) from error
        return Member(name, size, digest.hexdigest(), rows, columns or [])

    def publish(self, manifest: Manifest) -> None:
        """Finish the archive, verify it, and give it its name. Raises ArchiveError."""
        text = json.dumps({"format": FORMAT, **asdict(manifest)}, ensure_ascii=False, indent=1)
        try:
            self._zip.writestr(MANIFEST, text)
            self._zip.close()
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unwritable(error) from error
        verify(self._temporary)
        try:
            name_file(self._temporary, self.path)
        except FileExistsError:
            raise ArchiveError(f"{self.path} exists already: choose another name.") from None
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ArchiveError:
        return ArchiveError(f"{self.path} can't be written: {error.strerror}. Nothing is left.")


class ArchiveReader:
    """An archive with a parsed manifest; its files are verified as they are read."""

    def __init__(self, path: Path) -> None:
        """Read the manifest. Raises ArchiveError if the file is no archive of this program."""
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except FileNotFoundError:
            raise ArchiveError(f"There is no file {path}.") from None
        except (IsADirectoryError, PermissionError) as error:
            raise ArchiveError(f"{path} can't be read: {error.strerror}.") from error
        except DAMAGED as error:
            raise ArchiveError(f"{path} is no backup, or was cut off: {error}.") from error
        try:
            self.manifest = self._read_manifest()
        except ArchiveError:
            self._zip.close()
            raise

    def __enter__(self) -> ArchiveReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def blocks(self, member: Member) -> Iterator[bytes]:
        """Yield a file's content. Raises ArchiveError at its end if the checksum differs."""
        digest = hashlib.sha256()
        rows = 0
        try:
            with self._zip.open(member.name) as file:
                while block := file.read(BLOCK):
                    digest.update(block)
                    rows += block.count(b"\n")
                    yield block
        except DAMAGED as error:
            raise ArchiveError(f"{self.path}: {member.name} is damaged: {error}.") from error
        if digest.hexdigest() != member.sha256:
            raise ArchiveError(f"{self.path}: {member.name} has another checksum than it had.")
        if member.columns and rows != member.rows:
            raise ArchiveError(f"{self.path}: {member.name} holds {rows} rows, not {member.rows}.")

    def check_all(self) -> None:
        """Verify every file. Raises ArchiveError."""
        members = [*self.manifest.tables.values(), *self.manifest.keys.values()]
        named = {MANIFEST, *(member.name for member in members)}
        found = set(self._zip.namelist())
        if strangers := found - named:
            raise ArchiveError(f"{self.path} holds what no backup does: {min(strangers)}.")
        for member in members:
            for _ in self.blocks(member):
                pass

    def _read_manifest(self) -> Manifest:
        try:
            if self._zip.getinfo(MANIFEST).file_size > MAX_MANIFEST_SIZE:
                raise ArchiveError(f"{self.path} is no backup: its manifest is too large.")
            raw = json.loads(self._zip.read(MANIFEST))
            if raw.pop("format") != FORMAT:
                raise ArchiveError(f"{self.path} was made by another version of this program.")
            return _manifest(raw)
        except KeyError as error:
            raise ArchiveError(f"{self.path} is no backup: it lacks {error}.") from error
        except (*DAMAGED, TypeError, AttributeError) as error:
            raise ArchiveError(f"{self.path}: its manifest is damaged: {error}.") from error


def _manifest(raw: dict[str, Any]) -> Manifest:
    tables = {name: Member(**member) for name, member in raw.pop("tables").items()}
    keys = {name: Member(**member) for name, member in raw.pop("keys").items()}
    sequences = {
        name: (int(last), bool(used)) for name, (last, used) in raw.pop("sequences").items()
    }
    return Manifest(**raw, tables=tables, keys=keys, sequences=sequences)


def verify(path: Path) -> Manifest:
    """Verify every file of an archive and return its manifest. Raises ArchiveError."""
    with ArchiveReader(path) as reader:
        reader.check_all()
        return reader.manifest
