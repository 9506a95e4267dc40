"""Send the file of a reply by staff."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import BinaryIO

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.whatsapp.base import (
    FileProvider,
    OutgoingFile,
    Recipient,
    SendError,
    SendResult,
    WhatsAppProvider,
)
from sessions_app.media.facade import attachment_of, media_place
from sessions_app.models import OutboundPart, Turn
from sessions_app.models.turns import SENDS_FILE
from sessions_app.turns.turn_claims import TurnLease

# A large file on a slow line takes longer than a lease.
RENEWED_AFTER_SECONDS = 30.0


class _LeasedFile(io.FileIO):
    """A file that renews the lease while it is read."""

    def __init__(self, path: Path, lease: TurnLease) -> None:
        super().__init__(path, "rb")
        self._lease = lease
        self._renewed = time.monotonic()

    def read(self, size: int | None = -1, /) -> bytes:
        now = time.monotonic()
        if now - self._renewed > RENEWED_AFTER_SECONDS:
            self._lease.renew()
            self._renewed = now
        return super().read(-1 if size is None else size)


def file_send(
    *,
    lease: TurnLease,
    provider: WhatsAppProvider,
    turn: Turn,
    part: OutboundPart,
    to: Recipient,
    reply_to: str | None,
    folder: Path | None,
) -> SendResult:
    """Call the provider once with the turn's file. Raises SendError and LeaseLostError."""
    if not isinstance(provider, FileProvider):
        raise SendError(ErrorText("send_no_files"), permanent=True)
    row = attachment_of(turn)
    if row is None or folder is None:
        raise SendError(ErrorText("send_file_gone"), permanent=True)
    place = media_place(folder, row.pk)

    def opened() -> BinaryIO:
        return _LeasedFile(place, lease)

    media = turn.reply.media if turn.reply else turn.context.get("media") or {}
    file = OutgoingFile(
        kind=str(turn.context[SENDS_FILE]),
        content_type=row.content_type,
        filename=str(media.get("filename") or row.pk),
        open=opened,
    )
    try:
        return provider.send_file(
            to=to,
            file=file,
            caption=part.content,
            callback_id=str(part.id),
            reply_to=reply_to,
        )
    except FileNotFoundError:
        raise SendError(ErrorText("send_file_gone"), permanent=True) from None
