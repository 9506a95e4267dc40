"""Build the dependencies of fetching files from the settings, and queue it."""

import logging
from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction

from memoryproject.foundation.integrations.configured import configured_providers
from memoryproject.foundation.integrations.media_storage import storage_choice
from memoryproject.foundation.integrations.media_storage.base import MediaStorageError
from memoryproject.foundation.process.jobs import enqueue
from sessions_app.media import fetch
from sessions_app.models import MediaFile, Message

logger = logging.getLogger(__name__)

MB = 1024 * 1024
# So long the answer to an erasure waits for a bucket; a worker removes what is left.
AWAITED_SECONDS = 10.0


def build_media_dependencies() -> fetch.MediaDependencies:
    """Build what fetching and keeping the files of messages depends on."""
    return fetch.MediaDependencies(
        providers=configured_providers(),
        storage=storage_choice.configured_media_storage(),
        max_bytes=settings.MEDIA_MAX_MB * MB,
        quota=build_media_quota(),
    )


def build_media_quota() -> fetch.MediaQuota:
    """Build the limits of the bytes that files may use."""
    return fetch.MediaQuota(settings.MEDIA_MAX_MB_PER_CHAT * MB, settings.MEDIA_MAX_MB_TOTAL * MB)


def enqueue_media(media_id: UUID) -> None:
    """Queue a task that fetches the file."""
    enqueue("sessions_app.tasks.fetch_media", str(media_id), task_name=f"media {media_id}")


def media_request(message: Message, refused: str = "") -> None:
    """Have the file of a message fetched after the open transaction, where files are kept.

    ``refused``: the code of why it isn't fetched.
    """
    if not settings.MEDIA_RETENTION_DAYS:
        return
    row = fetch.media_row_create(message, refused)
    if row is not None and not refused:
        enqueue_media(row.pk)


def media_forget(
    message_ids: Collection[UUID], *, receipt_id: UUID, chat_id: UUID | None = None
) -> int:
    """Remove the files of messages that are forgotten, or of a whole chat; return their number.

    It happens right after the commit, before anybody is told that they are forgotten. What isn't
    removed then, as a bucket doesn't answer, a worker removes, and the receipt says how much it is.
    """
    files = fetch.media_detach(message_ids, chat_id=chat_id, receipt_id=receipt_id)
    transaction.on_commit(lambda: _media_forget_now(receipt_id), robust=True)
    return files


def _media_forget_now(receipt_id: UUID) -> None:
    ordered_media_remove(receipt_id=receipt_id, seconds=AWAITED_SECONDS)
    if MediaFile.objects.filter(receipt_id=receipt_id).exists():
        _media_remove_enqueue()


def remove_after_commit() -> None:
    """Have the orders to remove files carried out after the commit.

    A bucket is left to a worker: no webhook waits for it. What this doesn't do, the sweep does.
    """
    transaction.on_commit(_ordered_media_remove_soon, robust=True)


def _ordered_media_remove_soon() -> None:
    if storage_choice.configured_media_storage().is_remote:
        _media_remove_enqueue()
    else:
        ordered_media_remove()


def _media_remove_enqueue() -> None:
    enqueue("sessions_app.tasks.remove_media", task_name="removal of files")


def ordered_media_remove(*, receipt_id: UUID | None = None, seconds: float | None = None) -> int:
    """Carry the orders out; where the storage doesn't answer, they stay for the next sweep.

    ``receipt_id``, ``seconds``: see ``ordered_files_remove``.
    """
    storage = storage_choice.configured_media_storage()
    try:
        return fetch.ordered_files_remove(storage, receipt_id=receipt_id, seconds=seconds)
    except OSError as error:
        logger.warning("Files are yet to be removed: %s", error)
        return 0


def old_media_drop(now: datetime) -> int:
    """Remove the files whose retention has ended, and what killed workers left.

    Where the storage doesn't answer, the next run does it.
    """
    storage = storage_choice.configured_media_storage()
    # What staff attach is kept for a day in any case: within it, it is sent.
    kept = timedelta(days=max(settings.MEDIA_RETENTION_DAYS, 1))
    try:
        dropped = fetch.media_drop(storage, before=now - kept)
        fetch.strays_remove(storage, now=now)
    except MediaStorageError as error:
        logger.warning("Old files are yet to be removed: %s", error)
        return 0
    return dropped
