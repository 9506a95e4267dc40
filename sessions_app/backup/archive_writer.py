"""Write an archive, independent of Django."""

import errno
import hashlib
import json
import logging
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from django.db.models import Q

from memories_app.documents.document_store import IncomingFile
from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from memoryproject.foundation.process.storage import folder_sync
from sessions_app.backup import archive as archives
from sessions_app.models import MediaFile
from sessions_app.models.summaries import MediaState

OWNER_ONLY = 0o600


class ArchiveWriter:
    """Write an archive under a temporary name next to ``path``.

    Only ``publish`` gives it its final name. Without that, the end of the block removes it.
    """

    def __init__(
        self, path: Path, *, access: archives.ArchiveAccess, recipients: Sequence[str] = ()
    ) -> None:
        """Create the temporary file. Raises ArchiveError if ``path`` exists or that fails.

        ``recipients``: the public keys for which the archive is encrypted; none: it isn't.
        """
        if path.exists():
            raise archives.ArchiveError(f"{path} exists already: choose another name.")
        self.path = path
        self._access = access
        self._recipients = recipients
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            descriptor = os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        except OSError as error:
            raise archives.ArchiveError(f"{path} can't be written: {error.strerror}.") from error
        self._file: IO[bytes] = os.fdopen(descriptor, "w+b")
        # The plain form of an encrypted archive has no name, and is never where backups are kept.
        self._plain = (
            tempfile.TemporaryFile(dir=access.scratch)  # noqa: SIM115 closed in __exit__
            if recipients
            else self._file
        )
        self._zip = zipfile.ZipFile(self._plain, "w", zipfile.ZIP_DEFLATED, compresslevel=6)

    def __enter__(self) -> "ArchiveWriter":
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
    ) -> archives.Member:
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
        return archives.Member(name, size, digest.hexdigest(), rows, columns or [])

    def publish(self, manifest: archives.Manifest) -> None:
        """Finish the archive, sign it, verify it, and give it its name. Raises ArchiveError."""
        document = archives.manifest_document(manifest)
        text = json.dumps(document, ensure_ascii=False, indent=1).encode()
        try:
            self._zip.writestr(archives.MANIFEST, text)
            self._zip.writestr(archives.SIGNATURE, archives.signature_of(text, self._access.key))
            self._zip.close()
            self._plain.flush()
            with archives.ArchiveReader(self.path, access=self._access, file=self._plain) as reader:
                reader.check_all()
            if self._recipients:
                archives.encrypt(self._plain, self._file, self._recipients)
                self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            name_file(self._temporary, self.path)
        except FileExistsError:
            raise archives.ArchiveError(
                f"{self.path} exists already: choose another name."
            ) from None
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> archives.ArchiveError:
        return archives.ArchiveError(
            f"{self.path} can't be written: {error.strerror}. Nothing is left."
        )


# Give a finished file its final name. Independent of Django.


# The errors of file systems without hard links: FAT and exFAT, some network folders.
NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

Link = Callable[[Path, Path], None]


def name_file(temporary: Path, path: Path, *, link: Link = os.link) -> None:
    """Move the file ``temporary`` to ``path``.

    Raises FileExistsError if ``path`` exists, and other OSError; then ``path`` is unchanged.
    """
    try:
        # Unlike a rename, a link never replaces a file that was created meanwhile.
        link(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        _rename(temporary, path)
    folder_sync(path.parent)


def _rename(temporary: Path, path: Path) -> None:
    """Reserve the name first, so that only this program's own file is replaced."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        os.replace(temporary, path)
    except OSError:
        path.unlink()
        raise


# Files of messages in an archive: read for it, and put back from it.

logger = logging.getLogger(__name__)


def kept_files() -> list[str]:
    """Return the names of the files that messages and waiting replies have."""
    owned = Q(message__isnull=False) | Q(turn__isnull=False)
    kept = MediaFile.objects.filter(owned, state=MediaState.STORED).order_by("media_id")
    return [str(key) for key in kept.values_list("media_id", flat=True)]


def media_add(
    archive: ArchiveWriter, storage: MediaStorage, names: list[str]
) -> dict[str, archives.Member]:
    """Write the files into the archive.

    One that was removed since the rows were read, because its message was forgotten or its
    retention ended, isn't in the archive. Raises ArchiveError and OSError.
    """
    added: dict[str, archives.Member] = {}
    for name in names:
        try:
            file = storage.open(name)
        except FileNotFoundError:
            logger.warning("The file %s isn't there any more: the backup is without it.", name)
            continue
        with file:
            blocks = iter(lambda file=file: file.read(archives.BLOCK), b"")  # type: ignore[misc]
            added[name] = archive.add(archives.media_member(name), blocks, is_packed=True)
    return added


@contextmanager
def media_put_back(archive: archives.ArchiveReader, storage: MediaStorage | None) -> Iterator[int]:
    """Put the archive's files into ``storage``, and yield how many; without a storage none.

    Where the block fails, those that weren't there before are removed again. Raises ArchiveError
    and OSError.
    """
    put = 0
    fresh: list[str] = []
    try:
        if storage is not None:
            for name, member in archive.manifest.media.items():
                if not storage.has(name):
                    fresh.append(name)
                _put(archive, member, storage, name)
                put += 1
        yield put
    except BaseException:
        if storage is not None and fresh:
            _undo(storage, fresh)
        raise


def _undo(storage: MediaStorage, names: list[str]) -> None:
    try:
        storage.remove(names)
    except OSError as error:
        logger.warning("%d files are left that belong to nothing: %s", len(names), error)


def _put(
    archive: archives.ArchiveReader, member: archives.Member, storage: MediaStorage, name: str
) -> None:
    with IncomingFile(storage.incoming, max_bytes=sys.maxsize) as file:
        for block in archive.blocks(member):
            file.write(block)
        storage.put(name, file.finished())
