"""The file of a reply: what it is, whether its provider takes it, and how it goes out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast
from uuid import UUID, uuid4

from django.core.files.uploadedfile import UploadedFile
from django.template.defaultfilters import filesizeformat

from memories_app.documents.document_store import IncomingFile
from memoryproject.foundation.errors.stored_errors import ErrorText, translate_error
from memoryproject.foundation.integrations.media_storage.base import MediaStorage, MediaStorageError
from memoryproject.foundation.integrations.whatsapp.base import WhatsAppProvider
from memoryproject.foundation.integrations.whatsapp.outgoing_text import split_text, text_length
from sessions_app.media.fetch import attachment_undo, media_name
from sessions_app.media.outgoing_types import outgoing_type, sent_name
from sessions_app.models import MediaFile, Message, Turn
from sessions_app.models.summaries import MediaState

logger = logging.getLogger(__name__)

BLOCK = 256 * 1024
MAX_LENGTH = 20_000


@dataclass(frozen=True)
class Attachment:
    """A file that the provider takes, put into the storage of files.

    ``kind``: image, video, audio or document.
    """

    kind: str
    content_type: str
    filename: str
    file: IncomingFile
    media_id: UUID

    @property
    def media(self) -> dict[str, str]:
        """Return what the message says of its file."""
        return {"mime_type": self.content_type, "filename": self.filename}

    def keep(self, **owner: Message | Turn) -> None:
        """Keep the file with its message or its turn, in the transaction that stores them."""
        MediaFile.objects.create(
            **owner,
            media_id=self.media_id,
            state=MediaState.STORED,
            content_type=self.content_type,
            size=self.file.size,
            sha256=self.file.sha256,
        )


@contextmanager
def attached(
    posted: UploadedFile[Any] | None, *, provider: WhatsAppProvider, storage: MediaStorage | None
) -> Iterator[Attachment | None]:
    """Check a file and put it; one that isn't kept meanwhile is removed at the end.

    Call it outside of the transaction. Raises ReplyRefusedError and OSError.
    """
    if posted is None:
        yield None
        return
    if not posted.size:
        raise ReplyRefusedError("reply_file_empty")
    content, given_name = cast(BinaryIO, posted.file), posted.name or ""
    found = outgoing_type(content, given_name)
    if found is None:
        raise ReplyRefusedError("reply_file_type")
    most = provider.file_limits[found.kind]
    if posted.size > most:
        raise ReplyRefusedError("reply_file_too_large", most=filesizeformat(most))
    if storage is None:
        raise ReplyRefusedError("reply_file_not_kept")
    with IncomingFile(storage.incoming, max_bytes=most) as file:
        content.seek(0)
        while block := content.read(BLOCK):
            file.write(block)
        name = sent_name(given_name, found.content_type)
        media_id = uuid4()
        try:
            storage.put(media_name(media_id), file.finished())
        except MediaStorageError as error:
            logger.warning("A file of a reply was not kept: %s", error)
            raise ReplyRefusedError("reply_file_not_kept") from None
        try:
            yield Attachment(found.kind, found.content_type, name, file, media_id)
        finally:
            attachment_undo(storage, media_id)


def parts_of(text: str, attachment: Attachment | None, provider: WhatsAppProvider) -> list[str]:
    """Return the texts to send, in their order; the first one is the caption of the file.

    A text that is no caption, for its length or for the kind of the file, follows the file.
    """
    if attachment is None:
        return split_text(text, provider.text_limit) or [text]
    if text_length(text) <= provider.caption_limits.get(attachment.kind, 0):
        return [text]
    return ["", *split_text(text, provider.text_limit)]


class ReplyRefusedError(Exception):
    """The reply was refused, and nothing was stored; the error says why, by its code."""

    def __init__(self, code: str, /, **params: object) -> None:
        super().__init__(ErrorText(code, **params))

    @property
    def text(self) -> str:
        """Return the reason for the person who wrote the reply."""
        return translate_error(self.args[0])
