"""Remembers, recalls, changes and forgets, with the client that `make client` makes.

TOKEN=$(.venv/bin/python manage.py create_api_token my-client)
TOKEN=$TOKEN PYTHONPATH=client .venv/bin/python docs/client/example.py
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

from memory_client import AuthenticatedClient
from memory_client.api.chat import chat
from memory_client.api.memories import (
    memories_change,
    memories_forget,
    memories_list,
    memories_recall,
    memories_remember,
)
from memory_client.models import (
    AskRequest,
    ChatAnswer,
    ErrorResponse,
    Memory,
    NewMemoryRequest,
    PaginatedMemoryList,
    PatchedChangeMemoryRequest,
    RecallAnswer,
    RecallRequest,
    Receipt,
    StoredMemory,
)
from memory_client.types import UNSET, Unset

CHAT = "15550100789@c.us"


def memories_of(client: AuthenticatedClient, chat: str, limit: int = 100) -> Iterator[Memory]:
    """Yield all memories of a chat; a page has ``limit`` of them."""
    cursor: str | Unset | None = UNSET
    while cursor is not None:
        page = memories_list.sync(client=client, whatsapp_chat=chat, limit=limit, cursor=cursor)
        assert isinstance(page, PaginatedMemoryList), page
        yield from page.results
        cursor = page.next_cursor


def main() -> None:
    server = os.environ.get("SERVER", "http://127.0.0.1:8000")
    with AuthenticatedClient(server, os.environ["TOKEN"]) as client:
        fact = NewMemoryRequest(content="SampleCorp pays in 14 days", whatsapp_chat=CHAT)
        # The same key again would give the same answer, and store nothing twice.
        key = str(uuid.uuid4())
        memory = memories_remember.sync(client=client, body=fact, idempotency_key=key)
        assert isinstance(memory, StoredMemory), memory
        print(f"remembered: {memory.content} ({memory.visibility.value})")

        contents = [each.content for each in memories_of(client, CHAT)]
        print(f"listed: {', '.join(contents)}")

        question = RecallRequest(query="When does SampleCorp pay?", whatsapp_chat=CHAT)
        recalled = memories_recall.sync(client=client, body=question)
        assert isinstance(recalled, RecallAnswer), recalled
        print(f"recalled: {recalled.results[0].content}")

        said = AskRequest(whatsapp_chat=CHAT, content="When does SampleCorp pay?")
        answer = chat.sync(client=client, body=said)
        assert isinstance(answer, ChatAnswer), answer
        print(f"answered from {len(answer.memories)} memories")

        change = PatchedChangeMemoryRequest(content="SampleCorp pays in 30 days")
        changed = memories_change.sync_detailed(memory.memory_id, client=client, body=change)
        print(f"changed: {changed.parsed.content}, now {changed.headers['ETag'][:4]}…")

        receipt = memories_forget.sync(memory.memory_id, client=client)
        assert isinstance(receipt, Receipt), receipt
        print(f"forgotten: {receipt.kind.value}, {receipt.probe}")

        refused = memories_forget.sync(memory.memory_id, client=client)
        assert isinstance(refused, ErrorResponse), refused
        print(f"once more: {refused.errors[0].code}")


if __name__ == "__main__":
    main()
