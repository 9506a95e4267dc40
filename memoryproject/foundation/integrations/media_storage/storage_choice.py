"""Choose the storage of the files of messages by MEDIA_STORAGE."""

from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import urlsplit

from django.conf import settings
from django.core.files.storage import FileSystemStorage

from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from memoryproject.foundation.outside_services.breaker import ServiceGuard
from memoryproject.foundation.outside_services.models import ServiceName
from memoryproject.foundation.process.built_once import built_once
from memoryproject.foundation.process.storage import folder_sync

# In DATA_DIR: the files, or with a bucket those that are on their way into it.
MEDIA_FOLDER = "media"
INCOMING_FOLDER = "media-incoming"


@built_once
def configured_media_storage() -> MediaStorage:
    """Return the storage; nothing is asked of it yet. Its connections are used again."""
    data = Path(settings.DATA_DIR)
    if not settings.MEDIA_STORAGE:
        return FolderStorage(data / MEDIA_FOLDER)
    from memoryproject.foundation.integrations.media_storage.bucket import Bucket, BucketStorage  # noqa: PLC0415 slow, optional

    place = urlsplit(settings.MEDIA_STORAGE)
    endpoint = settings.MEDIA_S3_ENDPOINT_URL
    server = urlsplit(endpoint).netloc.rpartition("@")[2] or "Amazon S3"
    guard = ServiceGuard(str(ServiceName.MEDIA_STORAGE), f"{place.netloc} at {server}")
    bucket = Bucket(
        name=place.netloc,
        prefix=place.path.strip("/"),
        endpoint_url=endpoint,
        region=settings.MEDIA_S3_REGION,
        access_key=settings.MEDIA_S3_ACCESS_KEY_ID,
        secret_key=settings.MEDIA_S3_SECRET_ACCESS_KEY,
    )
    return BucketStorage(bucket, incoming=data / INCOMING_FOLDER, guard=guard)


# Files of messages in a folder of this computer, which nobody else reads.


class FolderStorage(MediaStorage):
    """The files of one folder (mode 700), each of mode 600."""

    def __init__(self, folder: Path) -> None:
        files = FileSystemStorage(
            location=folder,
            file_permissions_mode=0o600,
            directory_permissions_mode=0o700,
            allow_overwrite=True,
        )
        super().__init__(files, incoming=folder)

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self.storage.open(name))

    def remove(self, names: Collection[str]) -> None:
        for name in names:
            self.storage.delete(name)
        # The disk remembers what was removed.
        if self.incoming.is_dir():
            folder_sync(self.incoming)

    def lying(self, *, before: datetime) -> Iterator[str]:
        for path in sorted(self.incoming.glob("*")):
            try:
                is_old = path.is_file() and path.stat().st_mtime < before.timestamp()
            except FileNotFoundError:
                continue
            if is_old:
                yield path.name
