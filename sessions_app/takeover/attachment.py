"""The file of a reply: what it is, whether its provider takes it, and how it goes out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast
from uuid import UUID, uuid4

from django.core.files.uploadedfile import UploadedFile
from django.db import models
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext_lazy as _, ngettext_lazy

from memories_app.documents.document_store import IncomingFile
from memoryproject.foundation.choices import labelled
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
        raise ReplyRefusedError(Refusal.FILE_EMPTY)
    content, given_name = cast(BinaryIO, posted.file), posted.name or ""
    found = outgoing_type(content, given_name)
    if found is None:
        raise ReplyRefusedError(Refusal.FILE_TYPE)
    most = provider.file_limits[found.kind]
    if posted.size > most:
        raise ReplyRefusedError(Refusal.FILE_TOO_LARGE, most=filesizeformat(most))
    if storage is None:
        raise ReplyRefusedError(Refusal.FILE_NOT_KEPT)
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
            raise ReplyRefusedError(Refusal.FILE_NOT_KEPT) from None
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


# The reasons for which a reply by staff is refused.


class Refusal(models.TextChoices):
    """Each with its text for the person who wrote the reply."""

    EMPTY = labelled("empty", _("The reply is empty."))
    TOO_LONG = labelled(
        "too_long",
        ngettext_lazy(
            "The reply is too long: at most %(most)s character is sent.",
            "The reply is too long: at most %(most)s characters are sent.",
            MAX_LENGTH,
        ),
    )
    WINDOW_CLOSED = labelled(
        "window_closed",
        _("It wasn't sent: WhatsApp's window is closed until the person writes again."),
    )
    QUOTE_GONE = labelled(
        "quote_gone", _("It wasn't sent: the message that you quote isn't there any more.")
    )
    KEY_USED = labelled(
        "key_used",
        _("This form has sent another reply already. Send this one, too, if you mean it."),
    )
    BROKEN_FORM = labelled("broken_form", _("The form was broken. Here is your text in a new one."))
    FILE_EMPTY = labelled("file_empty", _("It wasn't sent: the file is empty. Your text is kept."))
    FILE_NOT_KEPT = labelled(
        "file_not_kept",
        _("It wasn't sent: the storage of files doesn't answer. Your text is kept."),
    )
    FILE_TYPE = labelled(
        "file_type",
        _(
            "It wasn't sent: WhatsApp takes pictures (JPEG, PNG), videos (MP4, 3GP), audio (MP3, "
            "M4A, AAC, AMR, Ogg with Opus), PDF, text and office files. Your text is kept."
        ),
    )
    FILE_TOO_LARGE = labelled(
        "file_too_large",
        _("It wasn't sent: WhatsApp takes files of this kind up to %(most)s. Your text is kept."),
    )
    NO_TEMPLATES = labelled("no_templates", _("It wasn't sent: only the Cloud API has templates."))
    TEMPLATE_NAME = labelled(
        "template_name", _("A template's name has small letters, digits and _ only.")
    )
    TEMPLATE_LANGUAGE = labelled(
        "template_language", _("Write the language as Meta does, such as en, en_US or he.")
    )
    TEMPLATE_PARAMETERS = labelled(
        "template_parameters",
        _("Write each value on a line of its own: at most 20, of at most 1,024 characters."),
    )
    TEMPLATE_VALUE = labelled(
        "template_value", _("%(name)s: write a value in one line, of at most 1,024 characters.")
    )
    TEMPLATE_MEDIA = labelled(
        "template_media",
        _("%(name)s: write an address that begins with https://, or the id of an upload."),
    )
    TEMPLATE_LACKS = labelled(
        "template_lacks",
        _("This template has a part (%(name)s) that can't be filled here. Send it from Meta."),
    )
    TEMPLATE_GONE = labelled(
        "template_gone", _("Meta's list doesn't show this template now. Choose another one.")
    )
    MARKETING_STOPPED = labelled(
        "marketing_stopped",
        _("It wasn't sent: this is a marketing message, and the person has stopped those."),
    )


class ReplyRefusedError(Exception):
    """The reply was refused; nothing was stored. ``why`` is one of Refusal."""

    def __init__(self, why: str, **values: object) -> None:
        super().__init__(why)
        self.why = why
        self.values = values

    @property
    def text(self) -> str:
        """Return the reason for the person who wrote the reply."""
        return str(Refusal(self.why).label) % self.values
