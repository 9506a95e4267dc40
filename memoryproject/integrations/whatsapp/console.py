"""A provider that writes answers to a stream: for the terminal and for trying things out."""

from __future__ import annotations

import sys
import uuid
from typing import TextIO

from memoryproject.integrations.whatsapp.base import Recipient, SendResult


class ConsoleProvider:
    """Writes each message as ``<chat>: <text>``; without a stream, to standard output."""

    name = "console"
    text_limit = 4096

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def send_text(
        self, *, to: Recipient, text: str, callback_id: str, reply_to: str | None = None
    ) -> SendResult:
        """Write one text. Every message gets an id of its own."""
        stream = self._stream or sys.stdout
        stream.write(f"{to.whatsapp_chat}: {text}\n")
        stream.flush()
        return SendResult(provider_message_id=f"console.{uuid.uuid4().hex}")

    def mark_read(
        self, *, provider_message_id: str, to: Recipient | None = None, typing: bool = True
    ) -> None:
        """A terminal has nothing to show for it."""
