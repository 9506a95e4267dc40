"""One measured product in a process of its own: `benchmarks/peers/worker.py STORE FOLDER DATABASE`.

Reads commands from the standard input and writes their results to the standard output, one line
of JSON each. A command is a list: its name, and the arguments of the method of that name below.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from conversations import read_conversations

STORES = {
    "chroma": ("peers.chroma_store", "ChromaStore"),
    "chroma over HTTP": ("peers.chroma_store", "ChromaServer"),
    "mem0": ("peers.mem0_store", "Mem0Store"),
    "langgraph": ("peers.langgraph_store", "LangGraphStore"),
    "ours": ("peers.own_store", "OwnStore"),
}


class Worker:
    def __init__(self, name: str, folder: str, database: str) -> None:
        module, kind = STORES[name]
        self._store = getattr(import_module(module), kind)(Path(folder), database)

    def fill(self, scope: str, file: str) -> float:
        """Store the texts of a file of JSON; return the seconds."""
        texts = json.loads(Path(file).read_text(encoding="utf-8"))
        began = time.perf_counter()
        self._store.fill(scope, texts)
        self._store.ready()
        return time.perf_counter() - began

    def quality(self, file: str, top_k: int, **options: Any) -> dict[str, float]:
        """Store the conversations of a file and ask their questions; return recall@``top_k``."""
        conversations = read_conversations(Path(file))
        for number, conversation in enumerate(conversations):
            self._store.fill_conversation(f"conversation-{number}", conversation)
        self._store.ready()
        shares = [
            len(
                question.evidence
                & set(self._store.ask(f"conversation-{number}", question.text, top_k, **options))
            )
            / len(question.evidence)
            for number, conversation in enumerate(conversations)
            for question in conversation.questions
        ]
        return {"questions": len(shares), "recall": sum(shares) / len(shares)}

    def serve(self) -> None:
        """Start the product's web server."""
        self._store.serve()

    def ask(
        self, scope: str, questions: Sequence[str], top_k: int, clients: int, **options: Any
    ) -> dict[str, Any]:
        """Ask the questions by so many clients at once; return milliseconds and all seconds."""

        def timed(question: str) -> float:
            began = time.perf_counter()
            found = self._store.ask(scope, question, top_k, **options)
            taken = (time.perf_counter() - began) * 1000
            assert len(found) <= top_k
            return taken

        began = time.perf_counter()
        taken = self._by_clients(timed, questions, clients)
        return {"ms": taken, "seconds": time.perf_counter() - began}

    def _by_clients(
        self, timed: Callable[[str], float], questions: Sequence[str], clients: int
    ) -> list[float]:
        if clients == 1:
            return [timed(question) for question in questions]
        if not hasattr(self, "_pool"):
            # Kept, so that connections to the database are.
            self._pool = ThreadPoolExecutor(clients)
        return list(self._pool.map(timed, questions))

    def close(self) -> None:
        self._store.close()


def main() -> None:
    # Whatever a product prints goes where errors go.
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker = Worker(*sys.argv[1:4])
    print(json.dumps("started"), file=results, flush=True)
    for line in sys.stdin:
        name, arguments, options = json.loads(line)
        print(json.dumps(getattr(worker, name)(*arguments, **options)), file=results, flush=True)
        if name == "close":
            return


if __name__ == "__main__":
    main()
