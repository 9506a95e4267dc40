"""Files of messages in an archive: read for it, and put back from it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.db.models import Q

from memories_app.documents.facade import IncomingFile
from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from sessions_app.backup.archive import ArchiveReader
from sessions_app.backup.archive_writer import ArchiveWriter
from sessions_app.backup.manifest import BLOCK, Member, media_member
from sessions_app.models import MediaFile
from sessions_app.models.stored_media import MediaState

logger = logging.getLogger(__name__)


def kept_files() -> list[str]:
    """Return the names of the files that messages and waiting replies have."""
    owned = Q(message__isnull=False) | Q(turn__isnull=False)
    kept = MediaFile.objects.filter(owned, state=MediaState.STORED).order_by("media_id")
    return [str(key) for key in kept.values_list("media_id", flat=True)]


def media_add(archive: ArchiveWriter, storage: MediaStorage, names: list[str]) -> dict[str, Member]:
    """Write the files into the archive.

    One that was removed since the rows were read, because its message was forgotten or its
    retention ended, isn't in the archive. Raises ArchiveError and OSError.
    """
    added: dict[str, Member] = {}
    for name in names:
        try:
            file = storage.open(name)
        except FileNotFoundError:
            logger.warning("The file %s isn't there any more: the backup is without it.", name)
            continue
        with file:
            blocks = iter(lambda file=file: file.read(BLOCK), b"")  # type: ignore[misc]
            added[name] = archive.add(media_member(name), blocks, is_packed=True)
    return added


@contextmanager
def media_put_back(archive: ArchiveReader, storage: MediaStorage | None) -> Iterator[int]:
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


def _put(archive: ArchiveReader, member: Member, storage: MediaStorage, name: str) -> None:
    with IncomingFile(storage.incoming, max_bytes=sys.maxsize) as file:
        for block in archive.blocks(member):
            file.write(block)
        storage.put(name, file.finished())
