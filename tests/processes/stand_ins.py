"""The loopback servers, which can also be told what to do with one text, whenever it comes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memoryproject.foundation.integrations.loopback.httpd import Answer, Request
from memoryproject.foundation.integrations.loopback.providers import graph_error
from tests.loopback.graph import GraphServer
from tests.loopback.httpd import Fault
from tests.loopback.openai_behaviours import Behaviour, hangs_up
from tests.loopback.openai_http import EMBEDDINGS, RecordedRequest
from tests.loopback.openai_server import OpenAIServer

MAX_HOLD_SECONDS = 60.0


@dataclass
class Hold:
    """Keeps requests that hold a text waiting until it is released. ``reached`` counts them."""

    text: str
    reached: int = 0
    released: threading.Event = field(default_factory=threading.Event)

    def wait(self, stopping: Callable[[], bool]) -> None:
        self.reached += 1
        for _ in range(int(MAX_HOLD_SECONDS / 0.05)):
            if stopping() or self.released.wait(0.05):
                return

    def release(self) -> None:
        self.released.set()


class HoldingOpenAIServer(OpenAIServer):
    """Answers "answer to: …"; holds back what it is told to. ``is_away``: it gives no answer."""

    def __init__(self) -> None:
        super().__init__(answer=lambda body: f"answer to: {asked(body)}")
        self.is_away = False
        self._chat_holds: list[Hold] = []
        self._embedding_holds: list[Hold] = []

    def next_behaviour(self, path: str) -> Behaviour:
        return hangs_up() if self.is_away else super().next_behaviour(path)

    def hold_chat(self, text: str) -> Hold:
        """Hold the completions whose last message holds this text."""
        self._chat_holds.append(Hold(text))
        return self._chat_holds[-1]

    def hold_embedding(self, text: str) -> Hold:
        """Hold the requests for this text's vector."""
        self._embedding_holds.append(Hold(text))
        return self._embedding_holds[-1]

    def record(self, request: RecordedRequest) -> int:
        number = super().record(request)
        body = request.body or {}
        is_embedding = request.path == EMBEDDINGS
        text = str(body.get("input")) if is_embedding else asked(body)
        for hold in self._embedding_holds if is_embedding else self._chat_holds:
            if hold.text in text and not hold.released.is_set():
                hold.wait(self.stopping.is_set)
        return number

    def prompt_for(self, text: str) -> list[dict[str, Any]]:
        """The messages of the one prompt whose last message is this text."""
        found = [body["messages"] for body in self.chat_bodies if asked(body) == text]
        assert len(found) == 1, f"{len(found)} prompts for {text!r}"
        return found[0]


class ChoosyGraphServer(GraphServer):
    """Refuses texts, or takes them and holds the answer back, while it is told to."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.refused: set[str] = set()
        self.tries: list[str] = []
        self._holds: list[Hold] = []

    def hold_answer(self, text: str) -> Hold:
        """Take messages that hold this text, but don't say so until it is released."""
        self._holds.append(Hold(text))
        return self._holds[-1]

    def take(self, request: Request) -> Fault:
        fault = super().take(request)
        text = text_of(request.body or {})
        if text:
            self.tries.append(text)
        if any(refused in text for refused in self.refused):
            # Meta's "service unavailable": nothing was sent, and trying again may help.
            return Fault(answer=graph_error(131016, "Service unavailable", status=503))
        return fault

    def handle(self, request: Request) -> Answer:
        answer = super().handle(request)
        text = text_of(request.body or {})
        for hold in self._holds:
            if hold.text in text and not hold.released.is_set():
                hold.wait(self._stopping.is_set)
        return answer

    def texts_to(self, phone: str) -> list[str]:
        """What was sent to a phone, in order."""
        return [text_of(sent) for sent in list(self.sent) if sent.get("to") == phone]

    def sent_with(self, text: str) -> list[dict[str, Any]]:
        """The accepted requests, with their ids, whose text holds this one."""
        return [sent for sent in list(self.sent) if text in text_of(sent)]


def text_of(body: dict[str, Any]) -> str:
    """The text of a send request; empty for one that marks a message as read."""
    return str((body.get("text") or {}).get("body", ""))


def asked(body: dict[str, Any]) -> str:
    """The last message of a prompt."""
    messages = body.get("messages") or [{}]
    return str(messages[-1].get("content", ""))
