"""Write an archive, independent of Django."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from sessions_app.backup.archive import ArchiveReader
from sessions_app.backup.encryption import encrypt
from sessions_app.backup.manifest import (
    MANIFEST,
    ArchiveAccess,
    ArchiveError,
    Manifest,
    Member,
    manifest_document,
)
from sessions_app.backup.naming import name_file
from sessions_app.backup.signature import SIGNATURE, signature_of

OWNER_ONLY = 0o600


class ArchiveWriter:
    """Write an archive under a temporary name next to ``path``.

    Only ``publish`` gives it its final name. Without that, the end of the block removes it.
    """

    def __init__(
        self, path: Path, *, access: ArchiveAccess, recipients: Sequence[str] = ()
    ) -> None:
        """Create the temporary file. Raises ArchiveError if ``path`` exists or that fails.

        ``recipients``: the public keys for which the archive is encrypted; none: it isn't.
        """
        if path.exists():
            raise ArchiveError(f"{path} exists already: choose another name.")
        self.path = path
        self._access = access
        self._recipients = recipients
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            descriptor = os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        except OSError as error:
            raise ArchiveError(f"{path} can't be written: {error.strerror}.") from error
        self._file: IO[bytes] = os.fdopen(descriptor, "w+b")
        # The plain form of an encrypted archive has no name, and is never where backups are kept.
        self._plain = (
            tempfile.TemporaryFile(dir=access.scratch)  # noqa: SIM115 closed in __exit__
            if recipients
            else self._file
        )
        self._zip = zipfile.ZipFile(self._plain, "w", zipfile.ZIP_DEFLATED, compresslevel=6)

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, *_: object) -> None:
        # Closing writes the zip's end, which a file that is removed doesn't need.
        with suppress(OSError, ValueError):
            self._zip.close()
        for file in (self._plain, self._file):
            with suppress(OSError):
                file.close()
        self._temporary.unlink(missing_ok=True)

    def add(
        self,
        name: str,
        blocks: Iterable[bytes],
        *,
        columns: list[str] | None = None,
        is_packed: bool = False,
    ) -> Member:
        """Write one file. Each line feed ends a row: COPY's text format escapes all others.

        ``is_packed``: its content is compressed already, as pictures are.
        """
        digest = hashlib.sha256()
        size = rows = 0
        about = zipfile.ZipInfo(name, time.localtime()[:6])
        about.compress_type = zipfile.ZIP_STORED if is_packed else zipfile.ZIP_DEFLATED
        about.external_attr = OWNER_ONLY << 16
        try:
            with self._zip.open(about, "w", force_zip64=True) as member:
                for block in blocks:
                    member.write(block)
                    digest.update(block)
                    size += len(block)
                    rows += block.count(b"\n")
        except OSError as error:
            raise self._unwritable(error) from error
        return Member(name, size, digest.hexdigest(), rows, columns or [])

    def publish(self, manifest: Manifest) -> None:
        """Finish the archive, sign it, verify it, and give it its name. Raises ArchiveError."""
        document = manifest_document(manifest)
        text = json.dumps(document, ensure_ascii=False, indent=1).encode()
        try:
            self._zip.writestr(MANIFEST, text)
            self._zip.writestr(SIGNATURE, signature_of(text, self._access.key))
            self._zip.close()
            self._plain.flush()
            with ArchiveReader(self.path, access=self._access, file=self._plain) as reader:
                reader.check_all()
            if self._recipients:
                encrypt(self._plain, self._file, self._recipients)
                self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            name_file(self._temporary, self.path)
        except FileExistsError:
            raise ArchiveError(f"{self.path} exists already: choose another name.") from None
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ArchiveError:
        return ArchiveError(f"{self.path} can't be written: {error.strerror}. Nothing is left.")
