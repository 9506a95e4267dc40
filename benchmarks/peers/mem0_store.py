"""mem0 with pgvector. Texts are stored as they are (``infer=False``), so that no model is asked.

They go straight into its vector store: its ``add`` takes milliseconds a text, which would make
filling longer than measuring. Questions take its own whole path.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from peers.store import DIMENSIONS, TextEmbedder

BATCH = 1_000
CLIENTS = 8
NOW = "2026-01-01T00:00:00+00:00"


class _Embedding:
    config = None

    def __init__(self) -> None:
        self._embedder = TextEmbedder()

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._embedder.embed([text])[0]

    def embed_batch(
        self, texts: Sequence[str], memory_action: str | None = None
    ) -> list[list[float]]:
        return self._embedder.embed(texts)


class Mem0Store:
    def __init__(self, folder: Path, database: str) -> None:
        os.environ |= {
            "MEM0_TELEMETRY": "False",
            "MEM0_DIR": str(folder / "mem0"),
            # No model is asked, but the client wants a key.
            "OPENAI_API_KEY": "none",
        }
        from mem0 import Memory  # noqa: PLC0415 it reads the environment

        self._database = database
        vectors = {
            "connection_string": database,
            "collection_name": "memories",
            "embedding_model_dims": DIMENSIONS,
            "hnsw": True,
            "minconn": 1,
            "maxconn": CLIENTS,
        }
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "pgvector", "config": vectors},
                "embedder": {"provider": "openai", "config": {"api_key": "none"}},
                "llm": {"provider": "openai", "config": {"api_key": "none"}},
                "history_db_path": str(folder / "mem0.db"),
            }
        )
        self._memory.embedding_model = _Embedding()

    def fill(self, scope: str, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), BATCH):
            part = list(texts[start : start + BATCH])
            self._memory.vector_store.insert(
                vectors=self._memory.embedding_model.embed_batch(part),
                ids=[str(uuid.uuid4()) for _ in part],
                payloads=[
                    self._payload(scope, start + place, text) for place, text in enumerate(part)
                ],
            )

    def _payload(self, scope: str, place: int, text: str) -> dict[str, Any]:
        return {
            "user_id": scope,
            "place": place,
            "role": "user",
            "data": text,
            "text_lemmatized": text,
            "hash": hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
            "created_at": NOW,
            "updated_at": NOW,
        }

    def fill_conversation(self, scope: str, conversation: Any) -> None:
        self.fill(scope, [turn.text for turn in conversation.turns])

    def ready(self) -> None:
        with psycopg.connect(self._database, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")

    def ask(self, scope: str, question: str, top_k: int) -> list[int]:
        found = self._memory.search(question, filters={"user_id": scope}, top_k=top_k)
        return [hit["metadata"]["place"] for hit in found["results"]]

    def close(self) -> None:
        """Nothing runs beside this process."""
