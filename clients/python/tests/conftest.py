"""The tests of the client and its adapters, against the running server of SERVER with TOKEN."""

from __future__ import annotations

import asyncio
import inspect
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from flaky import Flaky
from whatsapp_memory_client import AsyncMemoryClient, MemoryClient, RetryPolicy

QUICK = RetryPolicy(retries=3, max_wait=5, first_wait=0.01)
SERVER = os.environ["SERVER"]
TOKEN = os.environ["TOKEN"]


@pytest.fixture
def chat() -> str:
    """A chat that nobody has used."""
    return f"test-{uuid.uuid4().hex}@external"


@pytest.fixture
def flaky() -> Iterator[Flaky]:
    with Flaky(SERVER) as proxy:
        yield proxy


class Blocking:
    """The client of event loops, called as the one of threads is: a test is written once."""

    def __init__(self, client: AsyncMemoryClient) -> None:
        self._client = client
        self._loop = asyncio.new_event_loop()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def called(*args: Any, **kwargs: Any) -> Any:
            made = method(*args, **kwargs)
            if inspect.isawaitable(made):
                return self._loop.run_until_complete(made)
            return self._iterated(made)

        return called

    def _iterated(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        missing = object()
        while True:

            async def following() -> Any:
                return await anext(items, missing)

            item = self._loop.run_until_complete(following())
            if item is missing:
                return
            yield item

    def close(self) -> None:
        self._loop.run_until_complete(self._client.aclose())
        # As asyncio.run does.
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


@pytest.fixture(params=["threads", "asyncio"])
def client(request: pytest.FixtureRequest, flaky: Flaky) -> Iterator[Any]:
    """Both clients, behind the proxy."""
    made: Any = (
        MemoryClient(flaky.url, TOKEN, timeout=30, retry=QUICK)
        if request.param == "threads"
        else Blocking(AsyncMemoryClient(flaky.url, TOKEN, timeout=30, retry=QUICK))
    )
    yield made
    made.close()


@pytest.fixture(scope="session")
def model_url() -> str:
    """A server of chat completions, which answers with what it is told."""
    return os.environ["OPENAI_BASE_URL"]
