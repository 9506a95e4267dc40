"""Send the file of a reply by staff."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.media_storage.base import MediaStorage, MediaStorageError
from memoryproject.foundation.integrations.whatsapp.base import (
    FileProvider,
    OutgoingFile,
    Recipient,
    SendError,
    SendResult,
    WhatsAppProvider,
)
from sessions_app.media.facade import attachment_of, media_name
from sessions_app.models import OutboundPart, Turn
from sessions_app.models.turns import SENDS_FILE
from sessions_app.turns.turn_claims import TurnLease

logger = logging.getLogger(__name__)

# A large file on a slow line takes longer than a lease.
RENEWED_AFTER_SECONDS = 30.0


class _LeasedFile(io.RawIOBase):
    """A file that renews the lease while it is read. Raises SendError where it can't be read."""

    def __init__(self, file: BinaryIO, lease: TurnLease) -> None:
        super().__init__()
        self._file = file
        self._lease = lease
        self._renewed = time.monotonic()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        now = time.monotonic()
        if now - self._renewed > RENEWED_AFTER_SECONDS:
            self._lease.renew()
            self._renewed = now
        with _reported():
            return self._file.read(-1 if size is None else size)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def _reported() -> Iterator[None]:
    """Say that nothing was sent where the storage doesn't answer: it is tried again later."""
    try:
        yield
    except MediaStorageError as error:
        logger.warning("A file can't be sent now: %s", error)
        raise SendError(ErrorText("send_file_storage")) from None


def file_send(
    *,
    lease: TurnLease,
    provider: WhatsAppProvider,
    turn: Turn,
    part: OutboundPart,
    to: Recipient,
    reply_to: str | None,
    storage: MediaStorage | None,
) -> SendResult:
    """Call the provider once with the turn's file. Raises SendError and LeaseLostError."""
    if not isinstance(provider, FileProvider):
        raise SendError(ErrorText("send_no_files"), permanent=True)
    row = attachment_of(turn)
    if row is None or storage is None:
        raise SendError(ErrorText("send_file_gone"), permanent=True)
    name = media_name(row.pk)

    def opened() -> BinaryIO:
        with _reported():
            return cast(BinaryIO, _LeasedFile(storage.open(name), lease))

    media = turn.reply.media if turn.reply else turn.context.get("media") or {}
    file = OutgoingFile(
        kind=str(turn.context[SENDS_FILE]),
        content_type=row.content_type,
        filename=str(media.get("filename") or row.pk),
        open=opened,
    )
    try:
        return provider.send_file(
            to=to, file=file, caption=part.content, callback_id=str(part.id), reply_to=reply_to
        )
    except FileNotFoundError:
        raise SendError(ErrorText("send_file_gone"), permanent=True) from None
