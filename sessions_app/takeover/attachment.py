"""The file of a reply: what it is, whether its provider takes it, and how it goes out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from memories_app.documents.facade import IncomingFile
from memoryproject.foundation.integrations.whatsapp.base import FileProvider, WhatsAppProvider
from memoryproject.foundation.integrations.whatsapp.outgoing_text import split_text, text_length
from sessions_app.media.facade import attachment_store, outgoing_type, sent_name
from sessions_app.models import Message, Turn
from sessions_app.takeover.reply_errors import EmptyFileError, FileTooLargeError, FileTypeError

BLOCK = 256 * 1024


@dataclass(frozen=True)
class Posted:
    """A file as somebody chose it; ``name`` and ``size`` are what the browser sent."""

    file: BinaryIO
    name: str
    size: int


@dataclass(frozen=True)
class Attachment:
    """A file that the provider takes, copied into the folder of files.

    ``kind``: image, video, audio or document.
    """

    kind: str
    content_type: str
    filename: str
    file: IncomingFile
    folder: Path

    @property
    def media(self) -> dict[str, str]:
        """Return what the message says of its file."""
        return {"mime_type": self.content_type, "filename": self.filename}

    def keep(self, **owner: Message | Turn) -> None:
        """Keep the file with its message or its turn, in the transaction that stores them."""
        attachment_store(self.file, folder=self.folder, content_type=self.content_type, **owner)


@contextmanager
def attached(
    posted: Posted | None, *, provider: WhatsAppProvider, folder: Path
) -> Iterator[Attachment | None]:
    """Check and copy a file; one that isn't kept meanwhile is removed at the end.

    Raises EmptyFileError, FileTypeError, FileTooLargeError and OSError.
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
    with IncomingFile(folder, max_bytes=most) as file:
        posted.file.seek(0)
        while block := posted.file.read(BLOCK):
            file.write(block)
        name = sent_name(posted.name, found.content_type)
        yield Attachment(found.kind, found.content_type, name, file, folder)


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
