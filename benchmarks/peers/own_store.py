"""This product: memories, the messages of one chat, or both, in process; memories over HTTP."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

from measure_conversations import store
from own_database import FOLDER, own_database
from template_texts import fill

# isort: split

from conversations import Conversation
from django.core.management import call_command
from django.db import connection as database_connection

from memories_app.models import Memory
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from sessions_app.models import Chat, Message
from sessions_app.recall.facade import MEMORIES, MESSAGES, Viewer, recall
from tests.processes.installation import Installation
from tests.processes.waiting import wait_until

SOURCES = {
    "memories": (MEMORIES,),
    "messages": (MESSAGES,),
    "memories and messages": (MEMORIES, MESSAGES),
}
HTTP = "memories over HTTP"
# More texts than this have an approximate index.
INDEXED = 20_000


class OwnStore:
    """Memories are the owner's. Each scope of messages is a chat."""

    def __init__(self, folder: Path, database: str) -> None:
        self._stack = ExitStack()
        self._stack.enter_context(own_database())
        self._embedder = WordLlamaEmbedder()
        self._chats: dict[str, Chat] = {}
        self._places: dict[UUID, int] = {}
        self._installation: Installation | None = None
        self._token = ""
        self._connections = threading.local()

    def fill(self, scope: str, texts: Sequence[str]) -> None:
        chat = self._chats[scope] = fill(texts)
        memories = Memory.objects.order_by("fact_key").values_list("pk", flat=True)
        self._places = {key: place for place, key in enumerate(memories)}
        messages = Message.objects.filter(chat=chat).values_list("pk", "order_num")
        self._places |= {key: number - 1 for key, number in messages}
        if len(texts) > INDEXED:
            call_command("memories_reembed", init=True, verbosity=0)

    def fill_conversation(self, scope: str, conversation: Conversation) -> None:
        chat, keys = store(conversation, len(self._chats) + 1)
        self._chats[scope] = chat
        self._places |= {key: place for place, key in enumerate(keys)}

    def ready(self) -> None:
        with database_connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")

    def ask(self, scope: str, question: str, top_k: int, mode: str = "messages") -> list[int]:
        if mode == HTTP:
            return self._ask_by_http(question, top_k)
        found = recall(
            query=question,
            viewer=Viewer(user_role="godfather", chat_id=self._chats[scope].pk),
            embedder=self._embedder,
            top_k=top_k,
            min_similarity=0.0,
            sources=SOURCES[mode],
        )
        return [self._places[hit.id] for hit in found.hits]

    def serve(self) -> None:
        """Start the web server, as `make run` has it."""
        self._installation = Installation(FOLDER, EMBEDDER="wordllama", API_RATE_READ="0")
        self._installation.start_web()
        is_up = lambda: self._installation.answer("/healthz") == http.client.OK  # noqa: E731
        wait_until(is_up, "the web server answers")
        self._token = self._installation.manage("create_api_token", "peers").strip()

    def _ask_by_http(self, question: str, top_k: int) -> list[int]:
        installation = self._installation
        if installation is None:
            raise RuntimeError("The web server isn't started: see serve.")
        body = json.dumps({"query": question, "top_k": top_k, "min_similarity": 0.0})
        try:
            response = self._post(installation.port, body)
        except (ConnectionError, http.client.RemoteDisconnected):
            # The server closes connections that were idle while other products were asked.
            del self._connections.http
            response = self._post(installation.port, body)
        answer = json.load(response)
        if response.status != http.client.OK:
            raise RuntimeError(f"{response.status}: {answer}")
        return [self._places[UUID(hit["memory_id"])] for hit in answer["results"]]

    def _post(self, port: int, body: str) -> http.client.HTTPResponse:
        if not hasattr(self._connections, "http"):
            self._connections.http = http.client.HTTPConnection("127.0.0.1", port)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        connection: http.client.HTTPConnection = self._connections.http
        connection.request("POST", "/api/v1/memories/recall/", body, headers)
        return connection.getresponse()

    def close(self) -> None:
        if self._installation is not None:
            self._installation.stop_processes()
        self._stack.close()
