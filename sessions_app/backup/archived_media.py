"""Files of messages in an archive: read for it, and put back from it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db.models import Q

from memories_app.documents.facade import IncomingFile
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


def media_add(archive: ArchiveWriter, folder: Path, names: list[str]) -> dict[str, Member]:
    """Write the files into the archive.

    One that was removed since the rows were read, because its message was forgotten or its
    retention ended, isn't in the archive. Raises ArchiveError and OSError.
    """
    added: dict[str, Member] = {}
    for name in names:
        try:
            file = (folder / name).open("rb")
        except FileNotFoundError:
            logger.warning("The file %s isn't there any more: the backup is without it.", name)
            continue
        with file:
            blocks = iter(lambda file=file: file.read(BLOCK), b"")  # type: ignore[misc]
            added[name] = archive.add(media_member(name), blocks, is_packed=True)
    return added


@contextmanager
def media_put_back(archive: ArchiveReader, folder: Path | None) -> Iterator[int]:
    """Put the archive's files into ``folder``, and yield how many; without a folder none.

    Where the block fails, they are removed again. Raises ArchiveError and OSError.
    """
    put: list[Path] = []
    try:
        if folder is not None:
            for name, member in archive.manifest.media.items():
                place = folder / name
                _put(archive, member, place)
                put.append(place)
        yield len(put)
    except BaseException:
        for place in put:
            place.unlink(missing_ok=True)
        raise


def _put(archive: ArchiveReader, member: Member, place: Path) -> None:
    with IncomingFile(place.parent, max_bytes=sys.maxsize) as file:
        for block in archive.blocks(member):
            file.write(block)
        file.put(place)
