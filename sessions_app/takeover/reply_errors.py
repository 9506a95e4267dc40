"""The reasons for which a reply by staff is refused."""

from __future__ import annotations


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
