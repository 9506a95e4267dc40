"""Read and verify an archive, independent of Django."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from memoryproject.foundation.process.narrowing import present
from sessions_app.backup.encryption import EncryptionError, decrypted, is_encrypted
from sessions_app.backup.manifest import (
    BLOCK,
    DAMAGED,
    FORMAT,
    MANIFEST,
    ArchiveAccess,
    ArchiveError,
    Manifest,
    Member,
    manifest_parsed,
)
from sessions_app.backup.signature import SIGNATURE, SIGNATURE_SIZE, is_signed

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

    def _read_manifest_text(self) -> bytes:
        try:
            if self._zip.getinfo(MANIFEST).file_size > MAX_MANIFEST_SIZE:
                raise ArchiveError(f"{self.path} is no backup: its manifest is too large.")
            return self._zip.read(MANIFEST)
        except KeyError as error:
            raise ArchiveError(f"{self.path} is no backup: it lacks {error}.") from error
        except DAMAGED as error:
            raise ArchiveError(f"{self.path}: its manifest is damaged: {error}.") from error

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
        try:
            raw = json.loads(text)
            if raw.pop("format") != FORMAT:
                raise ArchiveError(f"{self.path} was made by another version of this program.")
            return manifest_parsed(raw)
        except KeyError as error:
            raise ArchiveError(f"{self.path} is no backup: it lacks {error}.") from error
        except (*DAMAGED, TypeError, AttributeError) as error:
            raise ArchiveError(f"{self.path}: its manifest is damaged: {error}.") from error


def _opened(path: Path, access: ArchiveAccess) -> IO[bytes]:
    """Return the plain archive as an open file; an encrypted one is decrypted."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise ArchiveError(f"There is no file {path}.") from None
    except OSError as error:
        raise ArchiveError(f"{path} can't be read: {error.strerror}.") from error
    try:
        if not is_encrypted(file):
            return file
        if access.identity is None:
            raise ArchiveError(f"{path} is encrypted: name the private key by --identity FILE.")
        plain = decrypted(file, access.identity, access.scratch)
    except EncryptionError as error:
        file.close()
        raise ArchiveError(f"{path}: {error}") from error
    except (ArchiveError, OSError):
        file.close()
        raise
    file.close()
    return plain
