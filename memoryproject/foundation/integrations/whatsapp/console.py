"""The provider of chats that came by the terminal or the API: it sends nothing."""

from __future__ import annotations

import uuid

from memoryproject.foundation.integrations.whatsapp.base import Recipient, SendResult


class ConsoleProvider:
    """Whoever asked is given the answer, and it stands in the conversation. Nothing is written
    anywhere else: what a worker prints ends in its log, which forgetting doesn't reach."""

    name = "console"
    text_limit = 4096

    def send_text(
        self, *, to: Recipient, text: str, callback_id: str, reply_to: str | None = None
    ) -> SendResult:
        """Every message gets an id of its own."""
        return SendResult(provider_message_id=f"console.{uuid.uuid4().hex}")

    def mark_read(
        self, *, provider_message_id: str, to: Recipient | None = None, typing: bool = True
    ) -> None:
        """A terminal has nothing to show for it."""
