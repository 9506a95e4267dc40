"""Read and verify an archive, independent of Django."""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from memoryproject.foundation.process.narrowing import present
from sessions_app.backup.encryption import (
    SIGNATURE,
    SIGNATURE_SIZE,
    EncryptionError,
    decrypted,
    is_encrypted,
    is_signed,
)

# The manifest of an archive, independent of Django.

FORMAT = 2
MANIFEST = "manifest.json"
BLOCK = 1024 * 1024

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
class ArchiveAccess:
    """The keys and the folder with which an archive is read.

    ``key`` is the key of the signature. ``trust``: accept archives without a valid signature.
    ``identity``: the file of private keys for encrypted archives, which are decrypted in
    ``scratch``.
    """

    key: str
    scratch: Path
    trust: bool = False
    identity: Path | None = None


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
    ones as "app.name". ``media``: the files of messages, by their names.
    """

    product_version: str
    created_at: str
    postgres: str
    migrations: list[str]
    tables: dict[str, Member]
    sequences: dict[str, tuple[int, bool]]
    keys: dict[str, Member] = field(default_factory=dict)
    media: dict[str, Member] = field(default_factory=dict)

    @property
    def members(self) -> list[Member]:
        """Return all files of the archive besides the manifest and its signature."""
        return [*self.tables.values(), *self.keys.values(), *self.media.values()]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())


def table_member(table: str) -> str:
    return f"tables/{table}.copy"


def key_member(key: str) -> str:
    return f"keys/{key}"


def media_member(name: str) -> str:
    return f"media/{name}"


def manifest_document(manifest: Manifest) -> dict[str, Any]:
    """Return the manifest as a JSON object; of a file of a message only size and checksum."""
    document = {"format": FORMAT, **asdict(manifest)}
    document["media"] = {name: [each.size, each.sha256] for name, each in manifest.media.items()}
    if not document["media"]:
        del document["media"]
    return document


def manifest_parsed(raw: dict[str, Any]) -> Manifest:
    """Return the manifest of a JSON object. Raises KeyError, TypeError and ValueError."""
    tables = {name: Member(**member) for name, member in raw.pop("tables").items()}
    keys = {name: Member(**member) for name, member in raw.pop("keys").items()}
    media = {
        str(UUID(name)): Member(media_member(name), size, sha256)
        for name, (size, sha256) in raw.pop("media", {}).items()
    }
    sequences = {
        name: (int(last), bool(used)) for name, (last, used) in raw.pop("sequences").items()
    }
    return Manifest(**raw, tables=tables, keys=keys, media=media, sequences=sequences)


# Some hundred thousand files of messages.
MAX_MANIFEST_SIZE = 64 * BLOCK


class ArchiveReader:
    """An archive with a parsed manifest; its files are verified as they are read.

    ``is_signed``: the manifest has a valid signature, so that nobody without the key changed it.
    """

    def __init__(self, path: Path, *, access: ArchiveAccess, file: IO[bytes] | None = None) -> None:
        """Read the manifest. Raises ArchiveError if the file is no archive, or can't be trusted.

        ``file``: the open plain archive; otherwise it is opened by its ``path``.
        """
        self.path = path
        self._file = None if file else _opened(path, access)
        try:
            self._zip = zipfile.ZipFile(file or present(self._file))
        except DAMAGED as error:
            self._close_file()
            raise ArchiveError(f"{path} is no backup, or was cut off: {error}.") from error
        try:
            text = self._read_manifest_text()
            self.is_signed = self._check_signature(text, access)
            self.manifest = self._parse_manifest(text)
        except ArchiveError:
            self.__exit__()
            raise

    def __enter__(self) -> ArchiveReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._close_file()

    def _close_file(self) -> None:
        if self._file:
            self._file.close()

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
        members = self.manifest.members
        named = {MANIFEST, SIGNATURE, *(member.name for member in members)}
        found = set(self._zip.namelist())
        if strangers := found - named:
            raise ArchiveError(f"{self.path} holds what no backup does: {min(strangers)}.")
        for member in members:
            for _ in self.blocks(member):
                pass

    @contextmanager
    def _reading_manifest(self) -> Iterator[None]:
        """Explain the errors of the block as ArchiveErrors."""
        try:
            yield
        except KeyError as error:
            raise ArchiveError(f"{self.path} is no backup: it lacks {error}.") from error
        except (*DAMAGED, TypeError, AttributeError) as error:
            raise ArchiveError(f"{self.path}: its manifest is damaged: {error}.") from error

    def _read_manifest_text(self) -> bytes:
        with self._reading_manifest():
            if self._zip.getinfo(MANIFEST).file_size > MAX_MANIFEST_SIZE:
                raise ArchiveError(f"{self.path} is no backup: its manifest is too large.")
            return self._zip.read(MANIFEST)

    def _check_signature(self, manifest: bytes, access: ArchiveAccess) -> bool:
        """Return whether the signature is valid. Raises ArchiveError if it must be."""
        try:
            size = self._zip.getinfo(SIGNATURE).file_size
            signature = self._zip.read(SIGNATURE) if size == SIGNATURE_SIZE else b""
            problem = "was changed, or signed with another key than BACKUP_KEY"
        except KeyError:
            signature = b""
            problem = "is not signed"
        except DAMAGED as error:
            raise ArchiveError(f"{self.path}: its signature is damaged: {error}.") from error
        if is_signed(manifest, signature, access.key):
            return True
        if access.trust:
            return False
        raise ArchiveError(
            f"{self.path} {problem}. If another installation made it, set BACKUP_KEY to the key "
            "of that one (the file backup.key of its DATA_DIR). With --trust it is accepted as "
            "it is, with all accounts and tokens that somebody may have put into it."
        )

    def _parse_manifest(self, text: bytes) -> Manifest:
        with self._reading_manifest():
            raw = json.loads(text)
            if raw.pop("format") != FORMAT:
                raise ArchiveError(f"{self.path} was made by another version of this program.")
            return manifest_parsed(raw)


def _opened(path: Path, access: ArchiveAccess) -> IO[bytes]:
    """Return the plain archive as an open file; an encrypted one is decrypted."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise ArchiveError(f"There is no file {path}.") from None
    except OSError as error:
        raise ArchiveError(f"{path} can't be read: {error.strerror}.") from error
    with ExitStack() as stack:
        stack.enter_context(file)
        if not is_encrypted(file):
            stack.pop_all()
            return file
        if access.identity is None:
            raise ArchiveError(f"{path} is encrypted: name the private key by --identity FILE.")
        try:
            return decrypted(file, access.identity, access.scratch)
        except EncryptionError as error:
            raise ArchiveError(f"{path}: {error}") from error
