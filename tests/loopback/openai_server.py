"""An OpenAI server on this machine: real HTTP, as OpenAI's documents describe it, with a
memory of what it was sent and a script for what it does next."""

from __future__ import annotations

import hmac
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType

from tests.loopback.openai_behaviours import Behaviour, Json
from tests.loopback.openai_chat_api import echo_answer
from tests.loopback.openai_facts import facts_answer, wants_facts
from tests.loopback.openai_http import (
    CHAT,
    EMBEDDINGS,
    TRANSCRIPTIONS,
    LoopbackHTTPServer,
    RecordedRequest,
)


class OpenAIServer:
    """POST /v1/chat/completions, /v1/embeddings and /v1/audio/transcriptions on 127.0.0.1.

    api_key: what callers must present as Bearer; None lets everyone in.
    port: 0 takes a free one. Any model is answered for.
    answer: what the model says to a request's body, by default what was in the prompt. Where
    facts are asked for, it finds them by a few rules: see openai_facts.
    transcript: what it hears in every recording.

    Use it in a ``with`` block, or start() and stop() it.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        port: int = 0,
        answer: Callable[[Json], str] = echo_answer,
        transcript: str = "what was said",
    ) -> None:
        """Raises OSError when the port is taken."""
        self._answer = answer
        self.transcript = transcript
        self.stopping = threading.Event()
        self._api_key = api_key
        self._requests: list[RecordedRequest] = []
        self._scripts: dict[str, deque[Behaviour]] = {}
        self._changed = threading.Condition()
        self._http = LoopbackHTTPServer(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop serving. Requests that are waiting out a delay are answered at once."""
        self.stopping.set()
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()

    def __enter__(self) -> OpenAIServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def base_url(self) -> str:
        """For clients: ends in /v1."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> list[RecordedRequest]:
        """Every request so far, oldest first, refused ones too."""
        with self._changed:
            return list(self._requests)

    @property
    def chat_bodies(self) -> list[Json]:
        """The JSON bodies that the chat endpoint was sent, oldest first."""
        return self._bodies(CHAT)

    @property
    def embedding_bodies(self) -> list[Json]:
        """The JSON bodies that the embeddings endpoint was sent, oldest first."""
        return self._bodies(EMBEDDINGS)

    def script_chat(self, *behaviours: Behaviour) -> None:
        """What to do with the next chat requests, one each; then they are answered properly."""
        self._script(CHAT, behaviours)

    def script_embeddings(self, *behaviours: Behaviour) -> None:
        """As script_chat, for embeddings."""
        self._script(EMBEDDINGS, behaviours)

    def script_transcriptions(self, *behaviours: Behaviour) -> None:
        """As script_chat, for recordings."""
        self._script(TRANSCRIPTIONS, behaviours)

    def wait_for_requests(self, count: int, timeout: float = 60.0) -> bool:
        """Wait until ``count`` requests came in since the start. False when they didn't."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._requests) >= count, timeout)

    def accepts(self, authorization: str) -> bool:
        """Whether an Authorization header opens this server."""
        if self._api_key is None:
            return True
        expected = f"Bearer {self._api_key}"
        return hmac.compare_digest(authorization.encode(), expected.encode())

    def record(self, request: RecordedRequest) -> int:
        """Keep a request; returns its number, from 1."""
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()
            return len(self._requests)

    def next_behaviour(self, path: str) -> Behaviour:
        """Take the next entry of a path's script."""
        with self._changed:
            script = self._scripts.get(path)
            return script.popleft() if script else Behaviour()

    def answer_to(self, body: Json) -> str:
        """What the model says to a chat request."""
        return facts_answer(body) if wants_facts(body) else self._answer(body)

    def transcript_of(self, body: Json) -> str:
        """What is heard in a recording."""
        return self.transcript

    def now(self) -> int:
        """The time for an answer's ``created``."""
        return int(time.time())

    @property
    def transcription_bodies(self) -> list[Json]:
        """The forms that the transcription endpoint was sent, oldest first; of the files
        their names, sizes and hashes."""
        return self._bodies(TRANSCRIPTIONS)

    def _script(self, path: str, behaviours: Sequence[Behaviour]) -> None:
        with self._changed:
            self._scripts.setdefault(path, deque()).extend(behaviours)

    def _bodies(self, path: str) -> list[Json]:
        return [one.body for one in self.requests if one.path == path and one.body is not None]
