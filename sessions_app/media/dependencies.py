"""Build the dependencies of fetching files from the settings, and queue it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db import transaction

from memoryproject.foundation.integrations.configured import configured_providers
from memoryproject.foundation.process.lanes import enqueue, with_commit
from sessions_app.media.fetch import MediaDependencies
from sessions_app.media.media_store import media_row_create, ordered_files_remove
from sessions_app.models import Message
from sessions_app.models.stored_media import MEDIA_FOLDER


def media_folder() -> Path:
    return Path(settings.DATA_DIR) / MEDIA_FOLDER


def build_media_dependencies() -> MediaDependencies:
    return MediaDependencies(
        providers=configured_providers(),
        folder=media_folder(),
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
    """Carry the orders to remove files out after the commit; the sweep does what this doesn't."""
    transaction.on_commit(partial(ordered_files_remove, media_folder()), robust=True)
