"""Pydantic AI: the messages of a chat as an agent's history, and memory as its tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import FunctionToolset
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)

from ..async_client import AsyncMemoryClient
from ..models import Message, NewMessageRequest
from .stored import ROLES, Role, batches, message_of, raw_of


class MemoryHistory:
    """The messages of a chat's active session, among them what people wrote on WhatsApp. learn:
    facts are learned from what people say in the messages that are added."""

    def __init__(
        self, client: AsyncMemoryClient, whatsapp_chat: str, *, learn: bool | None = None
    ) -> None:
        self._client = client
        self._chat = whatsapp_chat
        self._learn = learn

    async def load(self) -> list[ModelMessage]:
        """All messages, the oldest first."""
        session = await self._client.open_session(self._chat)
        stored = self._client.messages(session["session_id"], role=ROLES, limit=1000)
        return [message async for each in stored for message in _read(each)][::-1]

    async def add(self, messages: Sequence[ModelMessage]) -> None:
        """Store what a run said."""
        dumped = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
        for batch in batches(map(_write, dumped)):
            await self._client.store_messages(batch, whatsapp_chat=self._chat, learn=self._learn)


def memory_tools(client: AsyncMemoryClient, whatsapp_chat: str) -> FunctionToolset[Any]:
    """Tools by which a model recalls and remembers facts of a chat, for ``Agent(toolsets=[…])``."""

    async def recall(question: str) -> list[str]:
        """Search the memory for what is known that may answer a question."""
        found = await client.recall(question, whatsapp_chat=whatsapp_chat)
        return [each["content"] for each in found["results"]]

    async def remember(fact: str) -> str:
        """Store one fact, in a sentence that can be understood alone."""
        return (await client.remember(fact, whatsapp_chat=whatsapp_chat))["outcome"]

    return FunctionToolset([recall, remember])


def _write(message: dict[str, Any]) -> NewMessageRequest:
    """A message with what was said in it: neither instructions nor thoughts."""
    is_answer = message["kind"] == "response"
    wanted = {"text"} if is_answer else {"user-prompt", "tool-return", "retry-prompt"}
    contents = [part["content"] for part in message["parts"] if part["part_kind"] in wanted]
    # A prompt with pictures is a list.
    texts = [each for one in contents for each in (one if isinstance(one, list) else [one])]
    is_of_person = any(part["part_kind"] == "user-prompt" for part in message["parts"])
    role: Role = "assistant" if is_answer else "user" if is_of_person else "tool"
    return message_of(role, "\n".join(each for each in texts if isinstance(each, str)), message)


def _read(stored: Message) -> list[ModelMessage]:
    raw = raw_of(stored)
    if raw is not None:
        return ModelMessagesTypeAdapter.validate_python([raw])
    if stored["role"] == "user":
        return [ModelRequest([UserPromptPart(stored["content"])])]
    return [ModelResponse([TextPart(stored["content"])])] if stored["role"] == "assistant" else []
