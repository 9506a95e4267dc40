"""The common part of both providers' stand-ins: webhooks that report the status of a message."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from memoryproject.foundation.integrations.loopback.httpd import Answer, LoopbackServer
from memoryproject.foundation.integrations.loopback.webhooks import Courier, Delivery, body_bytes


@dataclass(frozen=True)
class StoredFile:
    """A file in the form that its sender sent."""

    content: bytes
    mime_type: str


class ProviderServer(LoopbackServer):
    """A stand-in that posts webhooks to ``webhook_url``, if one is given.

    Every accepted message is followed by one webhook for each of ``statuses``, ``status_delay``
    seconds apart. ``sent`` holds the accepted messages, ``reads`` the ids that were marked as read,
    ``courier`` the results of the webhooks, ``files`` the files that messages can name.
    """

    def __init__(
        self,
        *,
        webhook_url: str = "",
        statuses: tuple[str, ...] = ("sent", "delivered", "read"),
        status_delay: float = 0.0,
        port: int = 0,
    ) -> None:
        super().__init__(port=port)
        self.webhook_url = webhook_url
        self.statuses = statuses
        self.status_delay = status_delay
        self.sent: list[dict[str, Any]] = []
        self.reads: list[str] = []
        self.courier = Courier()
        self.files: dict[str, StoredFile] = {}

    def add_file(
        self, content: bytes, mime_type: str = "application/pdf", *, file_id: str = ""
    ) -> str:
        """Add a file that a message can name; return its id. Its address is file_url()."""
        file_id = file_id or str(uuid.uuid4().int)[:15]
        self.files[file_id] = StoredFile(content, mime_type)
        return file_id

    def file_url(self, file_id: str) -> str:
        return f"{self.url}/files/{file_id}"

    def file_answer(self, path: str) -> Answer | None:
        """Return the file at a path; None if there is none."""
        stored = self.files.get(path.removeprefix("/files/"))
        if stored is None:
            return None
        return Answer(200, {}, {"Content-Type": stored.mime_type}, content=stored.content)

    def start(self) -> None:
        self.courier.start()
        super().start()

    def stop(self) -> None:
        super().stop()
        self.courier.stop()

    def report(self, payload: dict[str, Any]) -> None:
        """Post a webhook body soon, with the headers that prove its origin."""
        if self.webhook_url:
            body = body_bytes(payload)
            headers = self.webhook_headers(body)
            self.courier.post(Delivery(self.webhook_url, body, headers, self.status_delay))

    def webhook_headers(self, body: bytes) -> dict[str, str]:
        """Return the headers of a webhook with this body."""
        raise NotImplementedError
