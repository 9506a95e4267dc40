"""Settings, servers and models for embedding tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.embedding import choice
from tests.embedding.reembedding import at_first_wordllama
from tests.loopback.openai_server import OpenAIServer

# A fixture of these tests that stands elsewhere.
__all__ = ["at_first_wordllama"]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """An OpenAI-compatible server whose vectors are those of hashed words."""
    with OpenAIServer() as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    """Embedders and warnings are kept for a process; here each test is one."""
    yield
    for kept in (choice._openai, choice._model2vec, choice._warn_once):
        kept.cache_clear()


@pytest.fixture
def use_openai(settings: Any, server: OpenAIServer) -> OpenAIServer:
    """EMBEDDER=openai at the loopback server."""
    settings.EMBEDDER = "openai"
    settings.EMBEDDING_MODEL = "text-embedding-3-small"
    settings.OPENAI_BASE_URL = server.base_url
    return server
