"""The provider for chats from the terminal or the API. It sends nothing."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from memoryproject.foundation.integrations.whatsapp.base import (
    OutgoingFile,
    Recipient,
    SendResult,
)

_MEGABYTE = 1024 * 1024


class ConsoleProvider:
    """A provider that sends nothing: the caller gets the answer, and the conversation stores it.

    Nothing is written anywhere else: a worker's output goes to its log, which forgetting doesn't
    reach.
    """

    name = "console"
    text_limit = 4096
    file_limits: Mapping[str, int] = dict.fromkeys(
        ("image", "video", "audio", "document"), 100 * _MEGABYTE
    )
    caption_limits: Mapping[str, int] = dict.fromkeys(file_limits, text_limit)

    def send_text(
        self, *, to: Recipient, text: str, callback_id: str, reply_to: str | None = None
    ) -> SendResult:
        """Return a new id for each message."""
        return SendResult(provider_message_id=f"console.{uuid.uuid4().hex}")

    def send_file(
        self,
        *,
        to: Recipient,
        file: OutgoingFile,
        caption: str,
        callback_id: str,
        reply_to: str | None = None,
    ) -> SendResult:
        """Return a new id for each file."""
        return SendResult(provider_message_id=f"console.{uuid.uuid4().hex}")

    def mark_read(
        self, *, provider_message_id: str, to: Recipient | None = None, typing: bool = True
    ) -> None:
        """Do nothing: a terminal shows no read marks."""
