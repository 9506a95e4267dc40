"""Files of messages on the disk, and the rows that say what becomes of them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from memories_app.documents.facade import IncomingFile
from sessions_app.models import MediaFile, Message, Turn
from sessions_app.models.stored_media import MediaState

logger = logging.getLogger(__name__)

KINDS = ("image", "video", "audio", "voice", "document", "sticker")
ROWS_AT_ONCE = 500
# Longer than any download takes.
LEFT_OVER_SECONDS = 3600.0


def media_place(folder: Path, media_id: UUID) -> Path:
    """Return where the file lies; the name tells nothing about it."""
    return folder / str(media_id)


def media_row_create(message: Message) -> MediaFile | None:
    """Note that the message's file is to be fetched; None if it has none that is kept."""
    if message.kind not in KINDS or not message.media or message.revoked_at:
        return None
    return MediaFile.objects.create(message=message)


def attachment_store(
    file: IncomingFile, *, folder: Path, content_type: str, **owner: Message | Turn
) -> MediaFile:
    """Keep a file that staff send; ``owner`` is its ``message``, or its ``turn``. Raises OSError.

    Call it in the transaction that stores the owner. Where that is rolled back, the sweep removes
    the file.
    """
    row = MediaFile.objects.create(
        **owner,
        state=MediaState.STORED,
        content_type=content_type,
        size=file.size,
        sha256=file.sha256,
    )
    file.put(media_place(folder, row.pk))
    return row


def attachment_of(turn: Turn) -> MediaFile | None:
    """Return the file that a turn by staff sends; None once it is removed."""
    owner = Q(turn=turn) | Q(message=turn.reply_id) if turn.reply_id else Q(turn=turn)
    return MediaFile.objects.filter(owner, state=MediaState.STORED).first()


def media_detach(message_ids: Collection[UUID]) -> int:
    """Order the removal of these messages' files; return how many were on the disk.

    Call it in the transaction that deletes or empties the messages, and ``ordered_files_remove``
    after it.
    """
    rows = MediaFile.objects.filter(message__in=message_ids)
    stored = rows.filter(state=MediaState.STORED).count()
    rows.update(message=None)
    return stored


def ordered_files_remove(folder: Path) -> int:
    """Remove the files whose messages are gone, then their rows; return how many.

    A killed process leaves rows, and the next run goes on with them.
    """
    ordered = MediaFile.objects.filter(message__isnull=True, turn__isnull=True)
    return _remove(folder, ordered, delete=True)


def media_drop(folder: Path, *, before: datetime) -> int:
    """Remove the files that were taken in before a time; their messages stay. Return how many."""
    old = MediaFile.objects.filter(state=MediaState.STORED, created_at__lt=before)
    return _remove(folder, old, delete=False)


def _remove(folder: Path, rows: QuerySet[MediaFile], *, delete: bool) -> int:
    gone = 0
    while True:
        with transaction.atomic():
            # Locked: a worker that is about to put a file into its place waits, or has done so.
            found = rows.order_by("pk").select_for_update(skip_locked=True, of=("self",))
            keys = list(found.values_list("pk", flat=True)[:ROWS_AT_ONCE])
            for key in keys:
                media_place(folder, key).unlink(missing_ok=True)
            _sync(folder)
            here = MediaFile.objects.filter(pk__in=keys)
            if delete:
                here.delete()
            else:
                here.update(state=MediaState.REMOVED, sha256="")
        gone += len(keys)
        if len(keys) < ROWS_AT_ONCE:
            return gone


def strays_remove(folder: Path) -> None:
    """Remove what killed workers left: parts of files, and files without a row."""
    oldest = time.time() - LEFT_OVER_SECONDS
    old = [path for path in sorted(folder.glob("*")) if _is_older(path, oldest)]
    for start in range(0, len(old), ROWS_AT_ONCE):
        some = {path.name: path for path in old[start : start + ROWS_AT_ONCE]}
        ids = [UUID(name) for name in some if _is_id(name)]
        kept = Q(state__in=(MediaState.STORED, MediaState.PENDING)) | Q(message__isnull=True)
        known = MediaFile.objects.filter(kept, pk__in=ids).values_list("pk", flat=True)
        for name in set(some) - {str(key) for key in known}:
            logger.warning("A file of no message is removed from %s.", folder)
            some[name].unlink(missing_ok=True)


def _is_older(path: Path, oldest: float) -> bool:
    try:
        return path.is_file() and path.stat().st_mtime < oldest
    except FileNotFoundError:
        return False


def _is_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


def _sync(folder: Path) -> None:
    if not folder.is_dir():
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
