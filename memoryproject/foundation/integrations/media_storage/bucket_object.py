"""An object of a bucket, read as a file."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from memoryproject.foundation.integrations.media_storage.base import MediaStorageError


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
