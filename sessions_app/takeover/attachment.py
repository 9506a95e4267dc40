"""The file of a reply: what it is, whether its provider takes it, and how it goes out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO
from uuid import UUID, uuid4

from memories_app.documents.document_store import IncomingFile
from memoryproject.foundation.integrations.media_storage.base import MediaStorage, MediaStorageError
from memoryproject.foundation.integrations.whatsapp.base import FileProvider, WhatsAppProvider
from memoryproject.foundation.integrations.whatsapp.outgoing_text import split_text, text_length
from sessions_app.media.facade import (
    attachment_store,
    attachment_undo,
    media_name,
    outgoing_type,
    sent_name,
)
from sessions_app.models import Message, Turn

logger = logging.getLogger(__name__)

BLOCK = 256 * 1024


@dataclass(frozen=True)
class Posted:
    """A file as somebody chose it; ``name`` and ``size`` are what the browser sent."""

    file: BinaryIO
    name: str
    size: int


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
        attachment_store(self.media_id, self.file, content_type=self.content_type, **owner)


@contextmanager
def attached(
    posted: Posted | None, *, provider: WhatsAppProvider, storage: MediaStorage | None
) -> Iterator[Attachment | None]:
    """Check a file and put it; one that isn't kept meanwhile is removed at the end.

    Call it outside of the transaction. Raises EmptyFileError, FileTypeError, FileTooLargeError,
    FileNotKeptError and OSError.
    """
    if posted is None:
        yield None
        return
    if not posted.size:
        raise EmptyFileError
    found = outgoing_type(posted.file, posted.name)
    if found is None or not isinstance(provider, FileProvider):
        raise FileTypeError
    most = provider.file_limits[found.kind]
    if posted.size > most:
        raise FileTooLargeError(found.kind, most)
    if storage is None:
        raise FileNotKeptError
    with IncomingFile(storage.incoming, max_bytes=most) as file:
        posted.file.seek(0)
        while block := posted.file.read(BLOCK):
            file.write(block)
        name = sent_name(posted.name, found.content_type)
        media_id = uuid4()
        try:
            storage.put(media_name(media_id), file.finished())
        except MediaStorageError as error:
            logger.warning("A file of a reply was not kept: %s", error)
            raise FileNotKeptError from None
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
    takes = provider.caption_limits if isinstance(provider, FileProvider) else {}
    if text_length(text) <= takes.get(attachment.kind, 0):
        return [text]
    return ["", *split_text(text, provider.text_limit)]


# The reasons for which a reply by staff is refused.


class ReplyRefusedError(Exception):
    """The reply was refused; nothing was stored."""


class EmptyReplyError(ReplyRefusedError):
    """There are no words in the reply, and no file."""


class TooLongError(ReplyRefusedError):
    """The reply has more than MAX_LENGTH characters."""


class WindowClosedError(ReplyRefusedError):
    """The person wrote too long ago, or never."""


class QuoteGoneError(ReplyRefusedError):
    """The message to quote isn't there any more, or our number's provider doesn't know it."""


class KeyUsedError(ReplyRefusedError):
    """Another text was sent with this key."""


class EmptyFileError(ReplyRefusedError):
    """There is nothing in the file."""


class FileNotKeptError(ReplyRefusedError):
    """The storage of files doesn't answer."""


class FileTypeError(ReplyRefusedError):
    """The file is none that WhatsApp takes."""


class FileTooLargeError(ReplyRefusedError):
    """The provider takes files of this ``kind`` up to ``most`` bytes."""

    def __init__(self, kind: str, most: int) -> None:
        super().__init__(kind)
        self.kind = kind
        self.most = most


class NoTemplatesError(ReplyRefusedError):
    """The provider that sends this chat's replies has no templates."""


class BadTemplateError(ReplyRefusedError):
    """The template's ``field`` (name, language or parameters) is none that Meta takes."""

    def __init__(self, field: str) -> None:
        super().__init__(field)
        self.field = field
