"""The client for event loops (asyncio, trio). `make client` makes client.py of it, the one for
threads."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import httpx

from . import operations
from .core import (
    FAILURES,
    Attempts,
    Call,
    ChatEvent,
    ChatEvents,
    ListCall,
    Reply,
    RetryPolicy,
    base_of,
    check,
    given,
    reply_of,
    request_of,
)
from .models import (
    Chat,
    ChatAnswer,
    ChatsListQuery,
    Context,
    ContextQuestionRequest,
    Deleted,
    Me,
    MemoriesListQuery,
    Memory,
    MemoryBatchEntry,
    MemoryDetail,
    Message,
    NewExchangeRequestOptions,
    NewMemoryRequest,
    NewMemoryRequestOptions,
    NewMessageRequest,
    PatchedChangeMemoryRequest,
    Person,
    RecallAnswer,
    RecallRequestOptions,
    Receipt,
    Session,
    SessionsListQuery,
    SessionsMessagesListQuery,
    StoredExchange,
    StoredMemory,
    StoredMessages,
)

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T = TypeVar("T")


class AsyncMemoryClient:
    """A memory server, by its address and a token.

    Every call is tried again, with one Idempotency-Key, when the server is busy or gives no answer;
    ``retry`` says how often. timeout: seconds of one attempt. http: a client of your own, for
    proxies or certificates, which you close yourself.

    Methods raise APIError with a ``code``, or ConnectionFailed. Operations without a method here
    are functions of ``operations``, for ``call``, ``send`` and ``pages``.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        timeout: float = 60.0,
        retry: RetryPolicy | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        if not token.strip():
            raise ValueError("The token is empty.")
        self._base = base_of(base_url)
        self._policy = retry or RetryPolicy()
        self._owned = http is None
        self._http = http or httpx.AsyncClient(timeout=timeout)
        self._headers = {
            "Authorization": f"Bearer {token.strip()}",
            "Accept": "application/json, */*;q=0.1",
            "User-Agent": "whatsapp-memory-client",
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._owned:
            await self._http.aclose()

    # Any operation.

    async def send(self, call: Call[T]) -> Reply[T]:
        """Send a call of ``operations``; return its answer with ETag, status and request id."""
        attempts = Attempts(call, self._policy)
        while True:
            try:
                return reply_of(call, await self._http.send(self._request(call, attempts.key)))
            except FAILURES as error:
                await anyio.sleep(attempts.wait_after(error))

    async def call(self, call: Call[T]) -> T:
        """Send a call of ``operations``; return its answer."""
        return (await self.send(call)).data

    async def pages(self, call: ListCall[Any, T]) -> AsyncIterator[list[T]]:
        """Yield the pages of a list, from the one that the call names."""
        query = dict(call.query)
        while True:
            page = await self.call(ListCall[Any, T](call.method, call.path, query))
            yield page["results"]
            query["cursor"] = page["next_cursor"]
            if query["cursor"] is None:
                return

    async def items(self, call: ListCall[Any, T]) -> AsyncIterator[T]:
        """Yield the items of all pages of a list; ``limit`` is the size of a page."""
        async for page in self.pages(call):
            for item in page:
                yield item

    def _request(self, call: Call[Any], key: str, **headers: str) -> httpx.Request:
        request = request_of(self._http, self._base, call, key)
        request.headers.update({**self._headers, **headers})
        return request

    # Memories.

    async def remember(
        self,
        content: str,
        *,
        idempotency_key: str | None = None,
        **fields: Unpack[NewMemoryRequestOptions],
    ) -> StoredMemory:
        """Store a fact. One that is known already is not stored twice: see ``outcome``."""
        body: NewMemoryRequest = {"content": content, **fields}
        return await self.call(operations.memories_remember(body, idempotency_key=idempotency_key))

    async def remember_many(
        self, memories: Sequence[NewMemoryRequest], *, idempotency_key: str | None = None
    ) -> list[MemoryBatchEntry]:
        """Store up to 1,000 facts, all or none; the results are in their order."""
        call = operations.memories_remember_batch(
            {"memories": memories}, idempotency_key=idempotency_key
        )
        return (await self.call(call))["memories"]

    async def recall(self, query: str, **fields: Unpack[RecallRequestOptions]) -> RecallAnswer:
        """Find the texts that are relevant to a question, the best first in ``results``."""
        return await self.call(operations.memories_recall({"query": query, **fields}))

    def memories(self, **query: Unpack[MemoriesListQuery]) -> AsyncIterator[Memory]:
        """Yield memories, the newest first."""
        return self.items(operations.memories_list(**query))

    async def memory(self, memory_id: str) -> MemoryDetail:
        """One memory, with what it said before."""
        return await self.call(operations.memories_get(memory_id))

    async def change(
        self,
        memory_id: str,
        *,
        if_match: str | None = None,
        **fields: Unpack[PatchedChangeMemoryRequest],
    ) -> MemoryDetail:
        """Change the given fields of a memory."""
        return await self.call(operations.memories_change(memory_id, fields, if_match=if_match))

    async def forget(self, memory_id: str, *, idempotency_key: str | None = None) -> Receipt:
        """Erase a memory with every copy of it."""
        call = operations.memories_forget(memory_id, idempotency_key=idempotency_key)
        return await self.call(call)

    async def forget_many(
        self, memory_ids: Sequence[str], *, idempotency_key: str | None = None
    ) -> Deleted:
        """Erase up to 1,000 memories; those that are not there are named in ``not_found``."""
        call = operations.memories_forget_batch(
            {"memory_ids": memory_ids}, idempotency_key=idempotency_key
        )
        return await self.call(call)

    # Answers of the server's own model.

    async def chat(
        self, content: str, *, whatsapp_chat: str | None = None, idempotency_key: str | None = None
    ) -> ChatAnswer:
        """Say something in a chat and wait for the answer; ``outcome`` says whether it is one."""
        body = given(content=content, whatsapp_chat=whatsapp_chat)
        return await self.call(operations.chat(body, idempotency_key=idempotency_key))

    async def chat_stream(
        self, content: str, *, whatsapp_chat: str | None = None, idempotency_key: str | None = None
    ) -> AsyncGenerator[ChatEvent]:
        """Say something in a chat and yield the answer as it comes.

        A stream that is cut is begun again with the same key: what was said is stored once, and no
        piece comes twice.
        """
        body = given(content=content, whatsapp_chat=whatsapp_chat, stream=True)
        call = operations.chat(body, idempotency_key=idempotency_key)
        attempts, events = Attempts(call, self._policy), ChatEvents()
        while True:
            request = self._request(call, attempts.key, Accept="text/event-stream")
            try:
                answer = await self._http.send(request, stream=True)
                try:
                    if "event-stream" not in answer.headers.get("Content-Type", ""):
                        await answer.aread()
                        check(answer, wanted="event-stream")
                    events.begin()
                    async for chunk in answer.aiter_bytes():
                        for event in events.feed(chunk):
                            yield event
                            if event.event == "done":
                                return
                finally:
                    await answer.aclose()
                raise httpx.RemoteProtocolError("the stream ended before the answer did")
            except FAILURES as error:
                await anyio.sleep(attempts.wait_after(error))

    # Sessions, for a model of your own.

    async def open_session(self, whatsapp_chat: str | None = None) -> Session:
        """The active session of a chat, begun where there is none."""
        return await self.call(operations.sessions_open(given(whatsapp_chat=whatsapp_chat)))

    def sessions(self, **query: Unpack[SessionsListQuery]) -> AsyncIterator[Session]:
        """Yield sessions, the newest first."""
        return self.items(operations.sessions_list(**query))

    async def messages(
        self, session_id: str, **query: Unpack[SessionsMessagesListQuery]
    ) -> AsyncIterator[Message]:
        """Yield the messages of a session, the newest first."""
        async for page in self.pages(operations.sessions_messages_list(session_id, **query)):
            for message in reversed(page):
                yield message

    async def store_messages(
        self,
        messages: Sequence[NewMessageRequest],
        *,
        session_id: str | None = None,
        whatsapp_chat: str | None = None,
        learn: bool | None = None,
        idempotency_key: str | None = None,
    ) -> StoredMessages:
        """Store up to 1,000 messages, all or none, in a session, or in the active one of a chat.

        learn: facts are learned from what people say in them.
        """
        session_id = session_id or (await self.open_session(whatsapp_chat))["session_id"]
        body = given(messages=messages, learn=learn)
        call = operations.sessions_messages_add(session_id, body, idempotency_key=idempotency_key)
        return await self.call(call)

    async def exchange(
        self,
        query: str,
        reply: str,
        *,
        session_id: str | None = None,
        whatsapp_chat: str | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[NewExchangeRequestOptions],
    ) -> StoredExchange:
        """Store what a person said and what your model answered, as one turn."""
        session_id = session_id or (await self.open_session(whatsapp_chat))["session_id"]
        call = operations.sessions_exchanges_add(
            session_id, {"query": query, "reply": reply, **fields}, idempotency_key=idempotency_key
        )
        return await self.call(call)

    async def context(
        self,
        *,
        session_id: str | None = None,
        whatsapp_chat: str | None = None,
        **fields: Unpack[ContextQuestionRequest],
    ) -> Context:
        """The messages to send to a model of your own: history, summary and what is recalled."""
        session_id = session_id or (await self.open_session(whatsapp_chat))["session_id"]
        return await self.call(operations.sessions_context(session_id, fields))

    async def clear(self, session_id: str) -> Receipt:
        """Erase the messages of a session. Raises NotFound where it has none."""
        return await self.call(operations.sessions_messages_clear(session_id))

    async def forget_message(self, session_id: str, message_id: str) -> Receipt:
        """Erase a message, and the memories that were learned from it alone."""
        return await self.call(operations.sessions_messages_forget(session_id, message_id))

    async def forget_session(self, session_id: str) -> Receipt:
        """Erase a session with its messages, and the memories that were learned in it alone."""
        return await self.call(operations.sessions_forget(session_id))

    # People and groups.

    def chats(self, **query: Unpack[ChatsListQuery]) -> AsyncIterator[Chat]:
        """Yield chats, the newest first."""
        return self.items(operations.chats_list(**query))

    async def person(self, whatsapp_chat: str) -> Person:
        """What is known of a person, at a glance."""
        return await self.call(operations.chats_person(whatsapp_chat))

    async def erase_chat(self, whatsapp_chat: str) -> Receipt:
        """Erase a person or a group, with everything in the chat."""
        return await self.call(operations.chats_erase(whatsapp_chat))

    async def me(self) -> Me:
        """What the token may do."""
        return await self.call(operations.me_get())
