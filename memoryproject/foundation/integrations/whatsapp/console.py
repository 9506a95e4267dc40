"""The provider for chats from the terminal or the API. It sends nothing."""

from __future__ import annotations

import uuid

from memoryproject.foundation.integrations.whatsapp.base import Recipient, SendResult


class ConsoleProvider:
    """A provider that sends nothing: the caller gets the answer, and the conversation stores it.

    Nothing is written anywhere else: a worker's output goes to its log, which forgetting doesn't
    reach.
    """

    name = "console"
    text_limit = 4096

    def send_text(
        self, *, to: Recipient, text: str, callback_id: str, reply_to: str | None = None
    ) -> SendResult:
        """Return a new id for each message."""
        return SendResult(provider_message_id=f"console.{uuid.uuid4().hex}")

    def mark_read(
        self, *, provider_message_id: str, to: Recipient | None = None, typing: bool = True
    ) -> None:
        """Do nothing: a terminal shows no read marks."""
