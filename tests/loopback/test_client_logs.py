"""What the libraries of clients log: never an address with its credentials."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing

import pytest

from memoryproject.foundation.integrations.embedders.openai_embedder import OpenAIEmbedder
from memoryproject.foundation.integrations.llm.base import ChatMessage, ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.openai_chat import OpenAIChatModel
from tests.loopback.conftest import KEY
from tests.loopback.openai_server import OpenAIServer

LIBRARIES = ("httpx", "httpcore", "httpx2", "httpcore2", "openai", "urllib3", "requests")


def test_a_call_of_the_model_logs_no_address(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    url = server.base_url.replace("://", "://someone:a-password@")
    caplog.set_level(logging.INFO)
    # The credentials of the address take the place of the key, which the server refuses.
    with (
        closing(OpenAIChatModel(KEY, url, "gpt-4o-mini", timeout=10)) as model,
        pytest.raises(ChatModelError) as refused,
    ):
        model.complete(ChatRequest([ChatMessage("user", "hello")]))
    assert "a-password" not in str(refused.value)
    assert "a-password" not in caplog.text
    assert [record.name for record in caplog.records if record.name.startswith(LIBRARIES)] == []


def test_a_call_of_the_embedder_logs_no_address(
    make_embedder: Callable[..., OpenAIEmbedder], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    make_embedder().embed(["hello"])
    assert [record.name for record in caplog.records if record.name.startswith(LIBRARIES)] == []
