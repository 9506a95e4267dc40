"""The calls of the REST API that ``measure_api.py`` times, and the texts that they send."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from itertools import count
from typing import Any

PEOPLE = ("Dana", "Omer", "Ruth", "Yosef", "Miriam", "Eitan", "Noa", "Avi", "Tamar", "Gil")
FIRMS = ("TestCorp", "Bluebird", "Northwind", "Orchard", "Lighthouse", "Quarry", "Harbour")
TOPICS = (
    "the invoice of March",
    "the delivery to the warehouse",
    "the meeting about the new lease",
    "the broken printer on the second floor",
    "the order of forty chairs",
    "the insurance of the van",
)
ENDS = (
    "has to be paid within 30 days",
    "was moved to Thursday at nine",
    "is waiting for a signature",
    "costs 480 a month, and nobody has approved it yet",
    "was sent back because the address was wrong",
)
MEMORIES = 200
SESSION_MESSAGES = 200
# Of so many memories some are erased, one by one.
ERASED = 5_000
# Each tenth memory of a batch is known already.
REPEATED = 10

Work = Callable[["Client", str], None]
Batch = Callable[["Client", str, int], None]


class Client:
    """One connection that stays open. The standard library's client is the cheapest one."""

    def __init__(self, url: str, secret: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
        self._headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer's JSON. Bytes are sent unchanged. Raises RuntimeError if refused."""
        is_raw = body is None or isinstance(body, bytes)
        sent = body if is_raw else json.dumps(body).encode()
        self._connection.request(method, f"/api/v1/{path}", body=sent, headers=self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= http.client.BAD_REQUEST:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:300]!r}")
        return json.loads(content)


_numbers = count()


def question() -> str:
    number = next(_numbers)
    asked = f"{TOPICS[number % len(TOPICS)]} of {FIRMS[number // 5 % len(FIRMS)]}"
    return f"What about {asked}?"


def said(size: int) -> list[dict[str, str]]:
    """Return so many new messages, of both sides by turns."""
    return [
        {"role": "assistant" if place % 2 else "user", "content": text()} for place in range(size)
    ]


def text() -> str:
    """Return a text of some 20 words that was not there before."""
    return text_of(next(_numbers))


def text_of(number: int) -> str:
    return (
        f"{PEOPLE[number % len(PEOPLE)]} of {FIRMS[number // 3 % len(FIRMS)]} says that "
        f"{TOPICS[number // 7 % len(TOPICS)]} {ENDS[number // 11 % len(ENDS)]} (number {number})."
    )


def filled_sessions(url: str, secret: str, clients: int) -> list[str]:
    """Return a session for each client, each with messages; and store memories."""
    client = Client(url, secret)
    fill_memories(client, MEMORIES)
    sessions = []
    for number in range(clients):
        chat = {"whatsapp_chat": f"1555010{number:04}@c.us"}
        session = client.call("POST", "sessions/", chat)["session_id"]
        message_batch(client, session, SESSION_MESSAGES)
        sessions.append(session)
    return sessions


def fill_memories(client: Client, wanted: int) -> None:
    for start in range(0, wanted, 1_000):
        stored = [memory(text()) for _ in range(min(wanted - start, 1_000))]
        client.call("POST", "memories/batch/", {"memories": stored})


def memory(content: str) -> dict[str, str]:
    return {"content": content, "visibility": "public"}


def store(client: Client, session: str) -> None:
    client.call("POST", f"sessions/{session}/messages/", {"messages": said(1)})


def newest(client: Client, session: str) -> None:
    client.call("GET", f"sessions/{session}/messages/?limit=20")


def context(client: Client, session: str) -> None:
    client.call("POST", f"sessions/{session}/context/", {"query": question()})


def recall(client: Client, session: str) -> None:
    client.call("POST", "memories/recall/", {"query": question()})


def erasing(client: Client) -> Work:
    """Return the call that erases one of the newest memories, each time another one."""
    keys: list[str] = []
    page: dict[str, Any] = {"next_cursor": ""}
    while len(keys) < ERASED and page["next_cursor"] is not None:
        cursor = f"&cursor={page['next_cursor']}" if keys else ""
        page = client.call("GET", f"memories/?limit=1000{cursor}")
        keys += [each["memory_id"] for each in page["results"]]
    return lambda caller, _session: caller.call("DELETE", f"memories/{keys.pop()}/")


def message_batch(client: Client, session: str, size: int) -> None:
    client.call("POST", f"sessions/{session}/messages/", {"messages": said(size)})


def memory_batch(client: Client, session: str, size: int) -> None:
    stored = [memory(content) for content in partly_known(size)]
    client.call("POST", "memories/batch/", {"memories": stored})


def memory_import(client: Client, session: str, size: int) -> None:
    lines = [json.dumps(memory(content)) for content in partly_known(size)]
    client.call("POST", "memories/import/", "\n".join(lines).encode())


def partly_known(size: int) -> list[str]:
    """Return texts of which some are among the first memories."""
    return [text_of(place % MEMORIES) if place % REPEATED == 0 else text() for place in range(size)]


CALLS: dict[str, Work] = {
    "store one message": store,
    "newest 20 messages": newest,
    "context": context,
}
BATCH_CALLS: dict[str, Batch] = {
    "messages": message_batch,
    "memories": memory_batch,
    "memories, by import": memory_import,
}
