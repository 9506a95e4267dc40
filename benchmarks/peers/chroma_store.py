"""Chroma, in process with its data on the disk, or behind its own server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["ANONYMIZED_TELEMETRY"] = "False"

import chromadb
from chromadb.api.types import EmbeddingFunction
from chromadb.config import Settings

from peers.store import TextEmbedder

BATCH = 1_000
START_SECONDS = 60


class _Embedding(EmbeddingFunction):  # type: ignore[misc]
    def __init__(self) -> None:
        self._embedder = TextEmbedder()

    def __call__(self, input: Sequence[str]) -> Any:
        return self._embedder.embed(input)

    @staticmethod
    def name() -> str:
        return "wordllama"

    def get_config(self) -> dict[str, Any]:
        return {}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> _Embedding:
        return _Embedding()


class ChromaStore:
    def __init__(self, folder: Path, database: str) -> None:
        self._client = chromadb.PersistentClient(str(folder / "chroma"), settings=_SETTINGS)
        self._embedding = _Embedding()
        self._collections: dict[str, Any] = {}

    def fill(self, scope: str, texts: Sequence[str]) -> None:
        collection = self._client.create_collection(
            scope, embedding_function=self._embedding, configuration={"hnsw": {"space": "cosine"}}
        )
        for start in range(0, len(texts), BATCH):
            part = list(texts[start : start + BATCH])
            collection.add(ids=[str(start + place) for place in range(len(part))], documents=part)
        self._collections[scope] = collection

    def fill_conversation(self, scope: str, conversation: Any) -> None:
        self.fill(scope, [turn.text for turn in conversation.turns])

    def ready(self) -> None:
        """Its index is made with each text."""

    def ask(self, scope: str, question: str, top_k: int) -> list[int]:
        found = self._collections[scope].query(query_texts=[question], n_results=top_k)
        return [int(key) for key in found["ids"][0]]

    def close(self) -> None:
        """Nothing runs beside this process."""


class ChromaServer(ChromaStore):
    """Chroma's server on this machine. Questions are embedded by its client, here."""

    def __init__(self, folder: Path, database: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [str(Path(sys.executable).parent / "chroma"), "run", "--path"]
        command += [str(folder / "server"), "--host", "127.0.0.1", "--port", str(port)]
        self._server = subprocess.Popen(command, stdout=sys.stderr)
        self._embedding = _Embedding()
        self._collections = {}
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._client = chromadb.HttpClient("127.0.0.1", port, settings=_SETTINGS)
                return
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def close(self) -> None:
        self._server.terminate()
        self._server.wait()


_SETTINGS = Settings(anonymized_telemetry=False)
