"""A provider and a model that fail at random, before and after they accept."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from memoryproject.foundation.integrations.loopback.httpd import Answer, Request
from memoryproject.foundation.integrations.loopback.providers import graph_error
from tests.loopback.graph import GraphServer
from tests.loopback.httpd import Fault
from tests.loopback.openai_behaviours import Behaviour, Json, fails, hangs_up, rate_limited
from tests.loopback.openai_server import OpenAIServer

# What Meta answers when it is overloaded; both may be tried again.
PASSING = (
    graph_error(131016, "Service unavailable", status=503),
    graph_error(130429, "Rate limit"),
)
TEXT = "text"


class RandomGraphServer(GraphServer):
    """Refuses some sends, and accepts others without saying so. Counts what it accepts."""

    def __init__(self, *, faults: float, chance: random.Random, **options: Any) -> None:
        super().__init__(**options)
        self._faults_share = faults
        self._chance = chance
        self.accepted: Counter[str] = Counter()
        self._counting = threading.Lock()

    def take(self, request: Request) -> Fault:
        body = request.body or {}
        if TEXT not in body or self._chance.random() >= self._faults_share:
            return Fault()
        if self._chance.random() < 0.5:
            return Fault(answer=self._chance.choice(PASSING))
        return Fault(no_answer="reset", carried_out=True)

    def handle(self, request: Request) -> Answer:
        answer = super().handle(request)
        body = request.body or {}
        if answer.status == 200 and TEXT in body:
            with self._counting:
                self.accepted[key_of(str(body[TEXT]["body"]))] += 1
        # Hours of requests are counted, not kept.
        self.sent.clear()
        self.requests.clear()
        return answer


class RandomOpenAIServer(OpenAIServer):
    """Fails some requests; keeps none of them."""

    def __init__(self, *, faults: float, chance: random.Random, **options: Any) -> None:
        super().__init__(**options)
        self._faults_share = faults
        self._chance = chance

    def next_behaviour(self, path: str) -> Behaviour:
        if self._chance.random() >= self._faults_share:
            return Behaviour()
        kinds: tuple[Callable[[], Behaviour], ...] = (
            hangs_up,
            rate_limited,
            lambda: fails(500),
            lambda: fails(503),
        )
        return self._chance.choice(kinds)()

    def record(self, request: Any) -> int:
        return 1


def answer_with_key(body: Json) -> str:
    """Repeat the message's key, by which its answer is recognised."""
    return f"answer to {key_of(str(body['messages'][-1]['content']))}"


def key_of(text: str) -> str:
    """The word that tells the messages of a run apart: m and six digits; empty without one."""
    for word in text.split():
        if len(word) == 7 and word[0] == "m" and word[1:].isdigit():
            return word
    return ""
