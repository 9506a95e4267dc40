"""OpenAI Agents: a chat as the session of an agent."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, cast

from agents.items import TResponseInputItem
from agents.memory import SessionABC

from ..async_client import AsyncMemoryClient
from ..core import NotFound
from ..models import Message, NewMessageRequest
from .stored import ROLES, Role, batches, message_of, raw_of

ROLE_OF: dict[str, Role] = {"user": "user", "system": "system", "developer": "system"}


class MemorySession(SessionABC):
    """The items of a chat's active session, among them what people wrote on WhatsApp. learn: facts
    are learned from what people say in the items that are added."""

    def __init__(
        self, client: AsyncMemoryClient, whatsapp_chat: str, *, learn: bool | None = None
    ) -> None:
        self.session_id = whatsapp_chat
        self._client = client
        self._learn = learn

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        return [item for _, item in reversed(await self._newest(limit))]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        for batch in batches(map(_write, cast("list[Any]", items))):
            to = {"whatsapp_chat": self.session_id}
            await self._client.store_messages(batch, **to, learn=self._learn)

    async def pop_item(self) -> TResponseInputItem | None:
        for message, item in await self._newest(1):
            await self._client.forget_message(message["session_id"], message["message_id"])
            return item
        return None

    async def clear_session(self) -> None:
        session = await self._client.open_session(self.session_id)
        with suppress(NotFound):
            await self._client.clear(session["session_id"])

    async def _newest(self, limit: int | None) -> list[tuple[Message, TResponseInputItem]]:
        session = await self._client.open_session(self.session_id)
        found: list[tuple[Message, TResponseInputItem]] = []
        size = min(limit or 1000, 1000)
        async for message in self._client.messages(session["session_id"], role=ROLES, limit=size):
            if limit is not None and len(found) >= limit:
                break
            item = raw_of(message) or _plain(message)
            if item is not None:
                found.append((message, item))
        return found


def _write(item: dict[str, Any]) -> NewMessageRequest:
    """An item as a message. Of calls and results of tools the text is what they hold."""
    content = item.get("content") or item.get("output") or item.get("arguments") or ""
    if isinstance(content, list):
        content = "\n".join(str(part["text"]) for part in content if part.get("text"))
    text = content if isinstance(content, str) else json.dumps(content)
    is_result = str(item.get("type", "")).endswith("_output")
    role = "tool" if is_result else ROLE_OF.get(str(item.get("role")), "assistant")
    return message_of(role, text, item)


def _plain(message: Message) -> TResponseInputItem | None:
    if message["role"] not in ("user", "assistant") or not message["content"]:
        return None
    return cast("TResponseInputItem", {"role": message["role"], "content": message["content"]})
