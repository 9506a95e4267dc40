"""Fetch the file of a message once, check it, and put it into its place in the storage."""

import logging
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from memories_app.documents.document_store import INCOMING, IncomingFile
from memoryproject.foundation.integrations.documents.sniffing import DocumentError
from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from memoryproject.foundation.integrations.whatsapp.base import MediaError, MediaProvider, Recipient
from memoryproject.foundation.integrations.whatsapp.events import Media
from memoryproject.foundation.leases import Lease, LeaseLostError
from memoryproject.foundation.text.uuids import is_canonical_uuid
from sessions_app.media.outgoing_types import HEAD, type_of
from sessions_app.models import Chat, MediaFile, MediaState, Message, Turn

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


# Fetch the file of a message once, check what it is, and put it into its place.


# The bytes that files of messages use, and their limits: in one chat, and in all.


# Codes of files that are refused for lack of room.
CHAT_FULL = "chat_full"
TOTAL_FULL = "total_full"
LARGEST = 5
_LOCK = 7_130_000_012


@dataclass(frozen=True)
class MediaQuota:
    """The bytes that the files of one chat may use, and those of all. 0: no limit."""

    chat_bytes: int = 0
    total_bytes: int = 0

    def room(self, chat_id: UUID) -> tuple[int, str]:
        """Return how many bytes fit, and the code of the limit that takes no more."""
        rooms = [(sys.maxsize, "")]
        if self.total_bytes:
            rooms.append((self.total_bytes - bytes_used(), TOTAL_FULL))
        if self.chat_bytes:
            rooms.append((self.chat_bytes - bytes_used(chat_id), CHAT_FULL))
        return min(rooms)

    def room_locked(self, chat_id: UUID) -> tuple[int, str]:
        """Return the same; until the transaction ends, nobody else takes of it."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        return self.room(chat_id)


def bytes_used(chat_id: UUID | None = None) -> int:
    """Return the bytes of the files of one chat, or of all, with those that are being put.

    A file that is yet to be removed counts for all.
    """
    rows = MediaFile.objects.filter(state__in=(MediaState.STORED, MediaState.PENDING))
    if chat_id is not None:
        rows = rows.filter(Q(message__chat=chat_id) | Q(turn__chat=chat_id))
    used: int | None = rows.aggregate(all=Sum("size"))["all"]
    return used or 0


def refused_for_room(since: datetime) -> tuple[int, int]:
    """Return how many chats reached their own limit, and how many files the limit of all."""
    rows = MediaFile.objects.filter(state=MediaState.REFUSED, created_at__gte=since)
    chats = rows.filter(error_code=CHAT_FULL).aggregate(n=Count("message__chat", distinct=True))[
        "n"
    ]
    return chats, rows.filter(error_code=TOTAL_FULL).count()


def largest_chats() -> list[tuple[Chat, int]]:
    """Return the chats whose files use the most bytes."""
    of_chat = Coalesce(F("message__chat"), F("turn__chat"))
    rows = MediaFile.objects.filter(state=MediaState.STORED).annotate(of_chat=of_chat)
    rows = rows.filter(of_chat__isnull=False).order_by().values_list("of_chat")
    used = dict(rows.annotate(used=Sum("size")).order_by("-used", "of_chat")[:LARGEST])
    chats = Chat.objects.in_bulk(used)
    return [(chats[key], size) for key, size in used.items() if key in chats]


logger = logging.getLogger(__name__)

# The delays after failures; providers keep files for some days.
WAITS = (timedelta(seconds=20), timedelta(minutes=2), timedelta(minutes=15), timedelta(hours=2))
MAX_ATTEMPTS = len(WAITS) + 1
NOT_KEPT = ("too_large", "type", "refused", CHAT_FULL, TOTAL_FULL)


@dataclass(frozen=True)
class MediaDependencies:
    """``providers`` by name, the storage of files, and their limits: of each, and of them all."""

    providers: Mapping[str, Any]
    storage: MediaStorage
    max_bytes: int
    quota: MediaQuota = field(default_factory=MediaQuota)


def media_fetch(*, media_id: UUID, dependencies: MediaDependencies) -> str:
    """Fetch a file that is due; return its state. A second call has no second effect."""
    now = timezone.now()
    due = MediaFile.objects.filter(state=MediaState.PENDING, message__isnull=False)
    row = due.select_related("message__chat").filter(pk=media_id).first()
    if row is None or row.message is None or (row.not_before and row.not_before > now):
        return "not due"
    token = MediaFile.objects.filter(state=MediaState.PENDING).claim(
        row, now=now, attempts=F("attempts") + 1, size=0
    )
    if token is None:
        return "not due"
    lease = Lease(row, token)
    room, full = dependencies.quota.room(row.message.chat_id)
    if room <= 0:
        return _failed(lease, full, is_final=True, why="there is no room for it")
    most = min(dependencies.max_bytes, room)
    too_large = full if room < dependencies.max_bytes else "too_large"
    try:
        with IncomingFile(dependencies.storage.incoming, max_bytes=most) as file:
            _download(row.message, file, dependencies, most)
            return _keep(lease, row.message, file, dependencies)
    except (MediaError, DocumentError) as error:
        code = too_large if error.code == "too_large" else error.code
        is_final = not isinstance(error, MediaError) or error.permanent
        return _failed(lease, code, is_final=is_final, why=error)
    except LeaseLostError:
        return "gone"
    except OSError as error:
        # The disk is full, or the storage doesn't answer: what waits is fetched once it does.
        return _failed(lease, "storage", is_final=False, why=error)


def _download(
    message: Message, file: IncomingFile, dependencies: MediaDependencies, max_bytes: int
) -> None:
    provider = dependencies.providers.get(message.provider)
    if not isinstance(provider, MediaProvider):
        raise MediaError("the provider hands out no files", code="gone", permanent=True)
    known = {key: value for key, value in message.media.items() if key in _FIELDS}
    provider.fetch_media(
        media=Media(**known),
        provider_message_id=message.provider_message_id or "",
        chat=Recipient.at(message.chat.whatsapp_chat, message.number_id),
        into=file,
        max_bytes=max_bytes,
    )


_FIELDS = frozenset(Media.__dataclass_fields__)


def _keep(
    lease: Lease[MediaFile], message: Message, file: IncomingFile, dependencies: MediaDependencies
) -> str:
    content_type = type_of(file.read()[:HEAD], kind=message.kind)
    if not content_type:
        return _failed(lease, "type", is_final=True, why="its type isn't one that is kept")
    # While the lease holds, nobody carries an order out to remove what is being put here.
    lease.renew()
    with transaction.atomic():
        # Its room is taken before it is put: several workers don't exceed the limits together.
        room, full = dependencies.quota.room_locked(message.chat_id)
        if file.size > room:
            return _failed(lease, full, is_final=True, why="there is no room for it")
        lease.held().update(size=file.size)
    storage = dependencies.storage
    storage.put(media_name(lease.row.pk), file.finished())
    with transaction.atomic():
        row = lease.held().select_for_update().filter(message__isnull=False).first()
        if row is not None:
            lease.release(
                state=MediaState.STORED,
                content_type=content_type,
                sha256=file.sha256,
                error_code="",
            )
            return str(MediaState.STORED)
    if not MediaFile.objects.filter(pk=lease.row.pk, message__isnull=False).exists():
        # The message was forgotten meanwhile.
        storage.remove([media_name(lease.row.pk)])
        lease.release()
    return "gone"


def _failed(lease: Lease[MediaFile], code: str, *, is_final: bool, why: object) -> str:
    logger.warning("The file %s was not fetched: %s", lease.row.pk, why)
    attempt = lease.row.attempts + 1
    if code in NOT_KEPT:
        lease.release(state=MediaState.REFUSED, error_code=code, size=0)
        return str(MediaState.REFUSED)
    if is_final or attempt >= MAX_ATTEMPTS:
        lease.release(state=MediaState.FAILED, error_code=code, size=0)
        return str(MediaState.FAILED)
    lease.release(error_code=code, size=0, not_before=timezone.now() + WAITS[attempt - 1])
    return str(MediaState.PENDING)


def media_abandoned(now: datetime) -> list[UUID]:
    """Return the files that are due and that no worker fetches."""
    ready = Q(not_before__isnull=True) | Q(not_before__lte=now)
    due = MediaFile.objects.filter(ready, state=MediaState.PENDING, message__isnull=False)
    return [row.pk for row in due.order_by("created_at")[:200].abandoned(now)]
