"""LangChain: the messages of a chat as a history, for RunnableWithMessageHistory and others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)

from ..client import MemoryClient
from ..core import NotFound
from ..models import Message, NewMessageRequest
from .stored import ROLES, Role, batches, message_of, raw_of

ROLE_OF: dict[str, Role] = {
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
}


class MemoryChatMessageHistory(BaseChatMessageHistory):
    """The messages of a chat's active session. What people wrote on WhatsApp is among them.

    learn: facts are learned from what people say in the messages that are added.
    """

    def __init__(
        self, client: MemoryClient, whatsapp_chat: str | None = None, *, learn: bool | None = None
    ) -> None:
        self._client = client
        self._chat = whatsapp_chat
        self._learn = learn

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """All messages, the oldest first."""
        found = [*self._client.messages(self._session(), role=ROLES, limit=1000)]
        return [message for each in reversed(found) for message in _read(each)]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        for batch in batches(map(_write, messages)):
            self._client.store_messages(batch, whatsapp_chat=self._chat, learn=self._learn)

    def clear(self) -> None:
        with suppress(NotFound):
            self._client.clear(self._session())

    def _session(self) -> str:
        return self._client.open_session(self._chat)["session_id"]


def _write(message: BaseMessage) -> NewMessageRequest:
    fields = {"tool_call_id": message.tool_call_id} if isinstance(message, ToolMessage) else {}
    role = ROLE_OF.get(message.type, "user")
    return message_of(role, str(message.text), message_to_dict(message), **fields)


def _read(stored: Message) -> list[BaseMessage]:
    raw: Any = raw_of(stored)
    if raw is not None:
        return messages_from_dict([raw])
    if stored["role"] == "user":
        return [HumanMessage(stored["content"])]
    return [AIMessage(stored["content"])] if stored["role"] == "assistant" else []
