"""A loopback OpenAI server and the real clients that talk to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from memoryproject.foundation.integrations.embedders.openai_embedder import OpenAIEmbedder
from memoryproject.foundation.integrations.llm.openai_chat import OpenAIChatModel
from tests.loopback.openai_server import OpenAIServer

KEY = "sample-key-0123456789"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(api_key=KEY) as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    """What the clients slept."""
    return []


@pytest.fixture
def chat_model(server: OpenAIServer, waits: list[float]) -> Iterator[OpenAIChatModel]:
    model = OpenAIChatModel(KEY, server.base_url, "gpt-4o-mini", timeout=10, sleep=waits.append)
    with closing(model):
        yield model


@pytest.fixture
def make_embedder(
    server: OpenAIServer, waits: list[float]
) -> Iterator[Callable[..., OpenAIEmbedder]]:
    """Makes embedders of a model and dimensions, closed after the test."""
    with ExitStack() as stack:

        def make(
            model: str = "text-embedding-3-small", dimensions: int | None = None
        ) -> OpenAIEmbedder:
            embedder = OpenAIEmbedder(
                KEY, server.base_url, model, dimensions, timeout=10, sleep=waits.append
            )
            return stack.enter_context(closing(embedder))

        yield make
