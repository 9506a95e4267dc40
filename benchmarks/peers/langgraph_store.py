"""LangGraph's PostgresStore with its pgvector index."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore

from peers.store import DIMENSIONS, TextEmbedder

BATCH = 1_000
CLIENTS = 8


class LangGraphStore:
    def __init__(self, folder: Path, database: str) -> None:
        self._database = database
        self._stack = ExitStack()
        index: Any = {"dims": DIMENSIONS, "embed": TextEmbedder().embed, "fields": ["text"]}
        pool: Any = {"min_size": CLIENTS, "max_size": CLIENTS}
        opened = PostgresStore.from_conn_string(database, pool_config=pool, index=index)
        self._store = self._stack.enter_context(opened)
        self._store.setup()

    def fill(self, scope: str, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), BATCH):
            part = texts[start : start + BATCH]
            self._store.batch(
                [
                    PutOp((scope,), str(start + place), {"text": text})
                    for place, text in enumerate(part)
                ]
            )

    def fill_conversation(self, scope: str, conversation: Any) -> None:
        self.fill(scope, [turn.text for turn in conversation.turns])

    def ready(self) -> None:
        with psycopg.connect(self._database, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")

    def ask(self, scope: str, question: str, top_k: int) -> list[int]:
        found = self._store.search((scope,), query=question, limit=top_k)
        return [int(item.key) for item in found]

    def close(self) -> None:
        self._stack.close()
