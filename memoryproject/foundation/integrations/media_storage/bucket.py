"""Files of messages in a bucket that speaks S3. Needs the packages of requirements-s3.txt."""

import io
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeVar, cast

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from storages.backends.s3 import S3Storage

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.media_storage.base import MediaStorage, MediaStorageError
from memoryproject.foundation.outside_services import guards
from memoryproject.foundation.text.uuids import is_canonical_uuid

T = TypeVar("T")

READ_BLOCK = 256 * 1024
# What is sent in parts leaves parts that no listing shows when it is broken off. Every file is
# smaller than this, so that each goes in one request.
ONE_REQUEST = 1024**3
MISSING = ("404", "NoSuchKey", "NotFound")
# Of the key or the bucket itself. The answer to HEAD has no code but its status, which may be about
# one object.
REFUSED = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "NoSuchBucket")


@dataclass(frozen=True)
class Bucket:
    """The place of the files, and the key to it. Without a key, boto3 looks for one.

    ``prefix``: what the names of our objects begin with. ``endpoint_url``: empty for Amazon's own.
    ``timeout``: seconds without a byte from the other side.
    """

    name: str
    prefix: str = ""
    endpoint_url: str = ""
    region: str = ""
    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    timeout: float = 20.0


class BucketStorage(MediaStorage):
    """Objects that only our key reads: no address of them is handed out."""

    is_remote: ClassVar[bool] = True

    def __init__(
        self, bucket: Bucket, *, incoming: Path, guard: guards.Guard | None = None
    ) -> None:
        self.bucket = bucket
        self._guard = guard or guards.Unguarded()
        super().__init__(_storage(bucket), incoming=incoming)

    def put(self, name: str, path: Path) -> None:
        self._ask(lambda: super(BucketStorage, self).put(name, path))

    def has(self, name: str) -> bool:
        return self._ask(lambda: super(BucketStorage, self).has(name))

    def open(self, name: str) -> BinaryIO:
        which = {"Bucket": self.bucket.name, "Key": self._key(name)}
        try:
            size = self._ask(lambda: self._client.head_object(**which)["ContentLength"])
        except MediaStorageError as error:
            if str(error).rpartition(" ")[2] in MISSING:
                raise FileNotFoundError(name) from None
            raise

        def read_from(start: int) -> Any:
            part = f"bytes={start}-"
            return self._ask(lambda: self._client.get_object(**which, Range=part)["Body"])

        lies = BucketObject(read_from, size=size, reported=_reported)
        return cast(BinaryIO, BufferedReader(lies, READ_BLOCK))

    def remove(self, names: Collection[str]) -> None:
        """Remove them, also from a bucket that keeps earlier versions."""
        for name in names:
            self._ask(partial(self._remove, self._key(name)))

    def lying(self, *, before: datetime) -> Iterator[str]:
        """Yield only names that are ours: the bucket may hold other things."""
        start = self._key("")
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket.name, Prefix=start, Delimiter="/"
        )
        following = iter(pages)
        while page := self._ask(lambda: next(following, None)):
            for entry in page.get("Contents", ()):
                name = entry["Key"].removeprefix(start)
                if entry["LastModified"] < before and is_canonical_uuid(name):
                    yield name

    def _ask(self, work: Callable[[], T]) -> T:
        """Ask the other side, unless it hasn't answered lately. Raises MediaStorageError."""

        def reported() -> T:
            with _reported():
                return work()

        try:
            return self._guard.call(reported)
        except guards.ServicePausedError:
            raise MediaStorageError("S3 didn't answer lately and isn't asked now") from None

    def _remove(self, key: str) -> None:
        answer = self._client.delete_object(Bucket=self.bucket.name, Key=key)
        if answer.get("DeleteMarker") or answer.get("VersionId"):
            self._remove_versions(key)

    def _remove_versions(self, key: str) -> None:
        pages = self._client.get_paginator("list_object_versions").paginate(
            Bucket=self.bucket.name, Prefix=key
        )
        for page in pages:
            for entry in [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]:
                if entry["Key"] == key:
                    self._client.delete_object(
                        Bucket=self.bucket.name, Key=key, VersionId=entry["VersionId"]
                    )

    @property
    def _client(self) -> Any:
        return self.storage.connection.meta.client  # type: ignore[attr-defined]

    def _key(self, name: str) -> str:
        return f"{self.bucket.prefix}/{name}" if self.bucket.prefix else name


def _storage(bucket: Bucket) -> Any:
    return S3Storage(
        bucket_name=bucket.name,
        location=bucket.prefix,
        endpoint_url=bucket.endpoint_url or None,
        region_name=bucket.region or None,
        access_key=bucket.access_key or None,
        secret_key=bucket.secret_key or None,
        # Those of the environment belong to another key; boto3 itself finds them where it has none.
        security_token=None,
        session_profile=None,
        file_overwrite=True,
        default_acl=None,
        transfer_config=TransferConfig(multipart_threshold=ONE_REQUEST, use_threads=False),
        client_config=Config(
            signature_version="s3v4",
            connect_timeout=min(5.0, bucket.timeout),
            read_timeout=bucket.timeout,
            retries={"mode": "standard", "total_max_attempts": 2},
            # Many servers know no bucket as part of the host's name, and none of the checksums
            # that newer clients send unasked.
            s3={"addressing_style": "path" if bucket.endpoint_url else "auto"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


@contextmanager
def _reported() -> Iterator[None]:
    """Raise what the other side does as MediaStorageError, in few words and without its key."""
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        is_down = guards.TIMEOUT_WEIGHT if status >= 500 or code == "SlowDown" else 0
        raise MediaStorageError(
            f"S3 refused {error.operation_name}: {code}",
            sickness=guards.REFUSED_WEIGHT if code in REFUSED else is_down,
            sickness_text=ErrorText("service_status", status=status),
        ) from None
    except (BotoCoreError, Boto3Error) as error:
        # The client has tried twice.
        raise MediaStorageError(
            f"S3 doesn't answer: {type(error).__name__}",
            sickness=guards.TIMEOUT_WEIGHT,
            sickness_text=ErrorText("service_unreachable"),
        ) from None


# An object of a bucket, read as a file.


class BucketObject(io.RawIOBase):
    """Reads from any place on; no more of the object is in memory than is read at once.

    ``read_from`` asks for the bytes from a place on; ``reported`` turns errors of the network into
    MediaStorageError.
    """

    def __init__(
        self,
        read_from: Callable[[int], Any],
        *,
        size: int,
        reported: Callable[[], AbstractContextManager[None]],
    ) -> None:
        super().__init__()
        self._read_from = read_from
        self._size = size
        self._reported = reported
        self._place = 0
        self._body: Any = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        if start + offset != self._place:
            self._end()
            self._place = max(0, start + offset)
        return self._place

    def readinto(self, buffer: Any, /) -> int:
        if self._place >= self._size:
            return 0
        with self._reported():
            if self._body is None:
                self._body = self._read_from(self._place)
            block: bytes = self._body.read(len(buffer))
        if not block:
            raise MediaStorageError("S3 sent less than the whole object")
        buffer[: len(block)] = block
        self._place += len(block)
        return len(block)

    def close(self) -> None:
        self._end()
        super().close()

    def _end(self) -> None:
        """Leave the answer that is being read; its connection can't be used for another."""
        body, self._body = self._body, None
        if body is not None:
            body.close()
