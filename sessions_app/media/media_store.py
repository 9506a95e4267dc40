"""Files of messages in their storage, and the rows that say what becomes of them."""

import logging
import time
from collections.abc import Collection
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from memories_app.documents.document_store import INCOMING
from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from memoryproject.foundation.text.uuids import is_canonical_uuid
from sessions_app.models import MediaFile, Message, Turn
from sessions_app.models.stored_media import MediaState

logger = logging.getLogger(__name__)

KINDS = ("image", "video", "audio", "voice", "document", "sticker")
ROWS_AT_ONCE = 500
ROWS_AWAITED = 20
# Longer than any download takes, and any reply from its file to its row.
LEFT_OVER_AFTER = timedelta(hours=1)


def media_name(media_id: UUID) -> str:
    """Return the file's name in the storage; it tells nothing about it."""
    return str(media_id)


def media_row_create(message: Message, refused: str = "") -> MediaFile | None:
    """Note that the message's file is to be fetched; None if it has none that is kept.

    ``refused``: the code of why it isn't fetched.
    """
    if message.kind not in KINDS or not message.media or message.revoked_at:
        return None
    return MediaFile.objects.create(
        message=message,
        state=MediaState.REFUSED if refused else MediaState.PENDING,
        error_code=refused,
    )


def attachment_undo(storage: MediaStorage, media_id: UUID) -> None:
    """Remove a file that got no row. What this doesn't remove is swept."""
    if MediaFile.objects.filter(pk=media_id).exists():
        return
    try:
        storage.remove([media_name(media_id)])
    except OSError as error:
        logger.warning("A file of no message is yet to be removed: %s", error)


def attachment_of(turn: Turn) -> MediaFile | None:
    """Return the file that a turn by staff sends; None once it is removed."""
    owner = Q(turn=turn) | Q(message=turn.reply_id) if turn.reply_id else Q(turn=turn)
    return MediaFile.objects.filter(owner, state=MediaState.STORED).first()


def media_detach(
    message_ids: Collection[UUID], *, chat_id: UUID | None = None, receipt_id: UUID | None = None
) -> int:
    """Order the removal of these messages' files; return how many were kept.

    ``chat_id``: of all files of this chat. ``receipt_id``: the receipt that counts them. Call it
    in the transaction that deletes or empties the messages, and ``ordered_files_remove`` after it.
    """
    which = Q(message__in=message_ids)
    if chat_id is not None:
        which |= Q(message__chat=chat_id) | Q(turn__chat=chat_id)
    rows = dict(MediaFile.objects.filter(which).values_list("pk", "state"))
    MediaFile.objects.filter(pk__in=rows).update(message=None, turn=None, receipt_id=receipt_id)
    return sum(state == MediaState.STORED for state in rows.values())


def ordered_files_remove(
    storage: MediaStorage, *, receipt_id: UUID | None = None, seconds: float | None = None
) -> int:
    """Remove the files whose messages are gone, then their rows; return how many.

    The file goes first: a killed process, or a storage that doesn't answer, leaves rows, and the
    next run goes on with them. A worker that may be about to put the file is waited for.
    ``receipt_id``: those of one forgetting. ``seconds``: no new block is begun after them. Raises
    OSError.
    """
    now = timezone.now()
    at_rest = Q(lease_until__isnull=True) | Q(lease_until__lte=now)
    ordered = MediaFile.objects.filter(at_rest, message__isnull=True, turn__isnull=True)
    if receipt_id is not None:
        ordered = ordered.filter(receipt_id=receipt_id)
    return _remove(storage, ordered, delete=True, seconds=seconds)


def media_drop(storage: MediaStorage, *, before: datetime) -> int:
    """Remove the files that were taken in before a time; their messages stay. Return how many.

    Raises OSError.
    """
    old = MediaFile.objects.filter(state=MediaState.STORED, created_at__lt=before)
    return _remove(storage, old, delete=False)


def _remove(
    storage: MediaStorage, rows: QuerySet[MediaFile], *, delete: bool, seconds: float | None = None
) -> int:
    gone = 0
    last = UUID(int=0)
    until = None if seconds is None else time.monotonic() + seconds
    block = ROWS_AT_ONCE if until is None else ROWS_AWAITED
    while True:
        found = rows.filter(pk__gt=last).order_by("pk")
        keys = list(found.values_list("pk", flat=True)[:block])
        if not keys or (until and time.monotonic() > until):
            return gone
        storage.remove([media_name(key) for key in keys])
        # Another process may have done the same: whoever changes the row counts it.
        here = rows.filter(pk__in=keys)
        if delete:
            gone += here.delete()[0]
        else:
            gone += here.update(state=MediaState.REMOVED, sha256="")
        last = keys[-1]


def strays_remove(storage: MediaStorage, *, now: datetime) -> None:
    """Remove what killed workers left: parts of files, and files without a row. Raises OSError."""
    oldest = now - LEFT_OVER_AFTER
    for path in storage.incoming.glob(f"{INCOMING}*"):
        if _is_older(path, oldest):
            path.unlink(missing_ok=True)
    lying = storage.lying(before=oldest)
    while names := list(islice(lying, ROWS_AT_ONCE)):
        ids = [UUID(name) for name in names if is_canonical_uuid(name)]
        kept = Q(state__in=(MediaState.STORED, MediaState.PENDING)) | Q(message__isnull=True)
        known = MediaFile.objects.filter(kept, pk__in=ids).values_list("pk", flat=True)
        if strays := set(names) - {media_name(key) for key in known}:
            logger.warning("%d files of no message are removed.", len(strays))
            storage.remove(strays)


def _is_older(path: Path, oldest: datetime) -> bool:
    try:
        return path.stat().st_mtime < oldest.timestamp()
    except FileNotFoundError:
        return False
