"""Choose the storage of the files of messages by MEDIA_STORAGE."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from memoryproject.foundation.integrations.media_storage.folder import FolderStorage
from memoryproject.foundation.outside_services.models import ServiceName
from memoryproject.foundation.outside_services.service_guard import ServiceGuard

# In DATA_DIR: the files, or with a bucket those that are on their way into it.
MEDIA_FOLDER = "media"
INCOMING_FOLDER = "media-incoming"


def configured_media_storage() -> MediaStorage:
    """Return the storage; nothing is asked of it yet."""
    data = Path(settings.DATA_DIR)
    if not settings.MEDIA_STORAGE:
        return FolderStorage(data / MEDIA_FOLDER)
    return _bucket_storage(
        settings.MEDIA_STORAGE,
        settings.MEDIA_S3_ENDPOINT_URL,
        settings.MEDIA_S3_REGION,
        settings.MEDIA_S3_ACCESS_KEY_ID,
        settings.MEDIA_S3_SECRET_ACCESS_KEY,
        data / INCOMING_FOLDER,
    )


@lru_cache(maxsize=4)
def _bucket_storage(
    address: str, endpoint: str, region: str, key_id: str, secret: str, incoming: Path
) -> MediaStorage:
    """Keep one for each process: its connections are used again."""
    from memoryproject.foundation.integrations.media_storage.bucket import Bucket, BucketStorage  # noqa: PLC0415 slow, optional

    place = urlsplit(address)
    server = urlsplit(endpoint).netloc.rpartition("@")[2] or "Amazon S3"
    guard = ServiceGuard(str(ServiceName.MEDIA_STORAGE), f"{place.netloc} at {server}")
    bucket = Bucket(
        name=place.netloc,
        prefix=place.path.strip("/"),
        endpoint_url=endpoint,
        region=region,
        access_key=key_id,
        secret_key=secret,
    )
    return BucketStorage(bucket, incoming=incoming, guard=guard)
