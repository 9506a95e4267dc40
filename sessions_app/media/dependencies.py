"""Build the dependencies of fetching files from the settings, and queue it."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import transaction

from memoryproject.foundation.integrations.configured import configured_providers
from memoryproject.foundation.integrations.media_storage.base import MediaStorageError
from memoryproject.foundation.integrations.media_storage.storage_choice import (
    configured_media_storage,
)
from memoryproject.foundation.process.lanes import enqueue, with_commit
from sessions_app.media.fetch import MediaDependencies
from sessions_app.media.media_store import (
    media_drop,
    media_row_create,
    ordered_files_remove,
    strays_remove,
)
from sessions_app.models import Message

logger = logging.getLogger(__name__)


def build_media_dependencies() -> MediaDependencies:
    """Build what fetching and keeping the files of messages depends on."""
    return MediaDependencies(
        providers=configured_providers(),
        storage=configured_media_storage(),
        max_bytes=settings.MEDIA_MAX_MB * 1024 * 1024,
    )


def enqueue_media(media_id: UUID) -> None:
    """Queue a task that fetches the file."""
    enqueue("sessions_app.tasks.fetch_media", str(media_id), task_name=f"media {media_id}")


def media_request(message: Message) -> None:
    """Have the file of a message fetched after the open transaction, where files are kept."""
    if not settings.MEDIA_RETENTION_DAYS:
        return
    row = media_row_create(message)
    if row is not None:
        with_commit(partial(enqueue_media, row.pk))


def remove_after_commit() -> None:
    """Have the orders to remove files carried out after the commit.

    A bucket is left to a worker: no request waits for it. What this doesn't do, the sweep does.
    """
    transaction.on_commit(_ordered_media_remove_soon, robust=True)


def _ordered_media_remove_soon() -> None:
    if configured_media_storage().is_remote:
        enqueue("sessions_app.tasks.remove_media", task_name="removal of files")
    else:
        ordered_media_remove()


def ordered_media_remove() -> int:
    """Carry the orders out; where the storage doesn't answer, they stay for the next sweep."""
    try:
        return ordered_files_remove(configured_media_storage())
    except MediaStorageError as error:
        logger.warning("Files are yet to be removed: %s", error)
        return 0


def old_media_drop(now: datetime) -> int:
    """Remove the files whose retention has ended, and what killed workers left.

    Where the storage doesn't answer, the next run does it.
    """
    storage = configured_media_storage()
    # What staff attach is kept for a day in any case: within it, it is sent.
    kept = timedelta(days=max(settings.MEDIA_RETENTION_DAYS, 1))
    try:
        dropped = media_drop(storage, before=now - kept)
        strays_remove(storage, now=now)
    except MediaStorageError as error:
        logger.warning("Old files are yet to be removed: %s", error)
        return 0
    return dropped
