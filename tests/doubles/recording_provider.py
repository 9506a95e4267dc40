"""A provider that only records its messages."""

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memoryproject.foundation.integrations.whatsapp.base import (
    MediaError,
    MediaSink,
    OutgoingFile,
    Recipient,
    SendError,
    SendResult,
    Template,
)
from memoryproject.foundation.integrations.whatsapp.events import Media

_KINDS = ("image", "video", "audio", "document")


@dataclass(frozen=True)
class SentText:
    """One text as the provider got it, and its new id."""

    to: Recipient
    text: str
    callback_id: str
    reply_to: str | None
    provider_message_id: str


@dataclass(frozen=True)
class SentFile:
    """One file as the provider got it; its caption is in ``sent``."""

    kind: str
    content_type: str
    filename: str
    content: bytes


@dataclass(frozen=True)
class ReadMark:
    """One message shown as read."""

    provider_message_id: str
    to: Recipient | None
    typing: bool


class RecordingProvider:
    """A WhatsAppProvider in memory, safe to share between threads.

    ``sent`` and ``read`` hold the calls in order; ``attempts`` counts all attempts, including
    failed ones. ``name`` and ``text_limit`` may be those of another provider. ``files`` holds the
    files for fetch_media, by their media id or URL; ``fetched`` names each attempt. ``sent_files``
    holds the files that were sent, by the ids of their messages.
    """

    def __init__(self, *, name: str = "recording", text_limit: int = 4096) -> None:
        self.name = name
        self.text_limit = text_limit
        self.file_limits: Mapping[str, int] = dict.fromkeys(_KINDS, 16 * 1024 * 1024)
        self.caption_limits: Mapping[str, int] = {"image": 1024, "video": 1024, "document": 1024}
        self.sent: list[SentText] = []
        self.sent_files: dict[str, SentFile] = {}
        self.read: list[ReadMark] = []
        self.attempts = 0
        self.fetched: list[str] = []
        self.files: dict[str, bytes] = {}
        self._media_failures: deque[MediaError] = deque()
        self._failures: deque[tuple[SendError, bool]] = deque()
        self._lock = threading.Lock()

    def fail_next(self, *errors: SendError, carried_out: bool = False) -> None:
        """Make the next sends raise these errors, one each, in this order.

        ``carried_out`` still keeps those messages in ``sent``, as if only the response was lost.
        """
        with self._lock:
            self._failures.extend((error, carried_out) for error in errors)

    def send_text(
        self, *, to: Recipient, text: str, callback_id: str, reply_to: str | None = None
    ) -> SendResult:
        """Record one text, or raise the next of the failures."""
        with self._lock:
            self.attempts += 1
            failure, carried_out = self._failures.popleft() if self._failures else (None, True)
            message_id = f"recorded.{callback_id}"
            if carried_out:
                self.sent.append(SentText(to, text, callback_id, reply_to, message_id))
            if failure is not None:
                raise failure
        return SendResult(provider_message_id=message_id)

    def send_file(self, *, file: OutgoingFile, caption: str, **message: Any) -> SendResult:
        """Record one file, and its caption as a text; or raise the next of the failures."""
        with file.open() as opened:
            content = opened.read()
        result = self.send_text(text=caption, **message)
        kept = SentFile(file.kind, file.content_type, file.filename, content)
        self.sent_files[result.provider_message_id] = kept
        return result

    def send_template(self, *, to: Recipient, template: Template, callback_id: str) -> SendResult:
        """Record one template, as its name and its values."""
        text = "\n".join([template.name, *template.parameters])
        return self.send_text(to=to, text=text, callback_id=callback_id)

    def mark_read(
        self, *, provider_message_id: str, to: Recipient | None = None, typing: bool = True
    ) -> None:
        """Record one read mark."""
        with self._lock:
            self.read.append(ReadMark(provider_message_id, to, typing))

    def fail_next_media(self, *errors: MediaError) -> None:
        """Make the next attempts to fetch a file raise these errors, one each, in this order."""
        with self._lock:
            self._media_failures.extend(errors)

    def fetch_media(
        self, *, media: Media, into: MediaSink, max_bytes: int, **_message: object
    ) -> None:
        """Write one of the files into the sink, or raise the next of the failures."""
        name = media.media_id or media.url
        with self._lock:
            self.fetched.append(name)
            failure = self._media_failures.popleft() if self._media_failures else None
        if failure is not None:
            raise failure
        if name not in self.files:
            raise MediaError("there is no such file", code="gone", permanent=True)
        if len(self.files[name]) > max_bytes:
            raise MediaError("the file is larger than the limit", code="too_large", permanent=True)
        into.write(self.files[name])
