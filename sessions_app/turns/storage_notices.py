"""Notify people that nothing can be stored (ERR-SESSION-002).

The notice goes straight through the provider, since the database can't be used.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from memoryproject.foundation.integrations.whatsapp.base import (
    Recipient,
    SendError,
    WhatsAppProvider,
)
from memoryproject.foundation.integrations.whatsapp.events import Event, InboundMessage
from memoryproject.foundation.process.shared_times import SharedTimes
from memoryproject.foundation.text.characters import detect_language
from sessions_app.conversations.facade import text_for

logger = logging.getLogger(__name__)

EVERY_SECONDS = 15 * 60


class StorageNotices:
    """Notify each chat at most once in fifteen minutes.

    The limit holds however often the chat's message is delivered again, and across processes.

    ``executor`` sends outside the caller's thread, since the caller may be a webhook. ``notified``
    stores when each chat was notified.
    """

    def __init__(
        self,
        providers: Mapping[str, WhatsAppProvider],
        executor: Executor,
        notified: SharedTimes,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._providers = providers
        self._executor = executor
        self._notified = notified
        self._clock = clock

    def notify_sender(self, event: Event) -> None:
        """Notify the sender of a message; other events need no notice."""
        if not isinstance(event, InboundMessage) or event.from_business:
            return
        if event.group_id and not (event.mentions_us or event.replies_to_us):
            return
        language = detect_language(event.text) or ""
        self.notify(provider=event.provider, to=_sender(event), language=language)

    def notify(self, *, provider: str, to: Recipient, language: str) -> None:
        """Send the notice, unless this chat was notified a short while ago."""
        sender = self._providers.get(provider)
        if sender is None:
            return
        chat = f"{provider}:{to.whatsapp_chat}"
        if self._notified.claim(chat, now=self._clock(), every=EVERY_SECONDS):
            self._executor.submit(self._send, sender, to, text_for("storage_full", language))

    def _send(self, sender: WhatsAppProvider, to: Recipient, text: str) -> None:
        try:
            sender.send_text(to=to, text=text, callback_id=str(uuid.uuid4()))
        except SendError as error:
            logger.error("Nobody could be told that the storage is full: %s", error)


def _sender(event: InboundMessage) -> Recipient:
    if event.group_id:
        return Recipient(event.group_id, group_id=event.group_id.removesuffix("@g.us"))
    party = event.party
    return Recipient(next(iter(party.addresses()), ""), phone=party.phone, bsuid=party.bsuid)
