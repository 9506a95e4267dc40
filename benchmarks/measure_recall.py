"""Measures how long recall takes in a large scope: run from the project's root.

    python benchmarks/measure_recall.py [--texts 10000] [--rounds 20] [--keep DIR]
    python benchmarks/measure_recall.py --texts 1000000 --beside 1000000 --keep DIR

Fills a database of its own with so many memories of the owner and as many messages of one chat,
and asks for them as a turn does, with vectors of questions that are given: making them is not
measured. ``--beside`` then adds messages of other chats, with their vectors, and asks again.
Prints milliseconds: of recalls, of their statements alone, of the first recall of a connection,
and of recalls while texts are stored. The words are made up: nothing is said about relevance.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from own_database import KEEPING, machine, own_database

# isort: split

from django.db import connection, connections
from django.utils import timezone
from scope_texts import DIMENSIONS, MODEL, Texts, add_beside, beside, fill, word_of

from memories_app.models import EmbeddingModel, Memory, MemoryEmbedding
from memoryproject.foundation.integrations.embedders.base import Calibration
from sessions_app.embedding.maintenance import indexes_ensure
from sessions_app.models import Chat, Message, MessageEmbedding
from sessions_app.recall.facade import MEMORIES, MESSAGES, Viewer, recall

# Ranks of the words of each kind of question: between these, so many.
RARE, MIDDLE, FREQUENT = (20_000, 150_000), (300, 3_000), (0, 40)
QUESTIONS = {
    "a rare word": [(RARE, 1)],
    "3 rare, 5 frequent": [(RARE, 3), (FREQUENT, 5)],
    "8 frequent words": [(FREQUENT, 8)],
    "40 words": [(RARE, 8), (MIDDLE, 16), (FREQUENT, 16)],
}
STORED_A_SECOND = 50


class GivenVectors:
    """An embedder with one vector for every text."""

    model_id = MODEL
    dimensions = DIMENSIONS
    calibration = Calibration(0.27, 10.8)

    def __init__(self) -> None:
        self.vector: list[float] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.vector for _ in texts]

    def coverage(self, text: str) -> float:
        return 1.0


class Asked:
    """Questions to one chat's owner."""

    def __init__(self, chat: Chat) -> None:
        self._viewer = Viewer(user_role="godfather", chat_id=chat.pk)
        self._embedder = GivenVectors()
        self._random = np.random.default_rng(3)
        some = MemoryEmbedding.objects.order_by("memory_id")[:200].values_list("vector", flat=True)
        self._vectors = beside(np.array([list(vector) for vector in some]), self._random)

    def question(self, kind: str) -> str:
        drawn = [self._random.integers(*ranks, count) for ranks, count in QUESTIONS[kind]]
        return " ".join(word_of(int(rank)) for ranks in drawn for rank in ranks)

    def recall(self, kind: str, sources: Sequence[str]) -> tuple[float, float]:
        """Return the milliseconds of one recall, and those of its statements."""
        question = self.question(kind)
        self._embedder.vector = self._random.choice(self._vectors).tolist()
        of_statements = 0.0

        def timed(execute: Any, *given: Any) -> Any:
            nonlocal of_statements
            began = time.perf_counter()
            try:
                return execute(*given)
            finally:
                of_statements += time.perf_counter() - began

        with connection.execute_wrapper(timed):
            started = time.perf_counter()
            found = recall(
                query=question,
                viewer=self._viewer,
                embedder=self._embedder,
                sources=sources,
                min_similarity=0.0,
            )
            taken = time.perf_counter() - started
        if not found.hits or found.degraded:
            raise SystemExit("Recall found nothing, or failed: see the log.")
        return taken * 1000, of_statements * 1000


def measure(asked: Asked, rounds: int) -> None:
    """Print the times of each kind of question."""
    for sources in ((MEMORIES,), (MESSAGES,)):
        print(f"{sources[0]:20} least  median     p95   statements alone, the same:")
        everything = []
        for kind in QUESTIONS:
            taken = [asked.recall(kind, sources) for _ in range(rounds + 1)][1:]
            everything += taken
            _print(kind, taken)
        _print("all", everything)
        first = []
        for _ in range(5):
            connection.close()
            first.append(asked.recall("3 rare, 5 frequent", sources))
        _print("first of connection", first)
        with _storing():
            taken = [asked.recall(kind, sources) for _ in range(rounds) for kind in QUESTIONS]
            _print("texts are stored", taken)


def _print(kind: str, taken: Sequence[tuple[float, float]]) -> None:
    figures = "   ".join(_figures([each[part] for each in taken]) for part in range(2))
    print(f"  {kind:18} {figures}", flush=True)


def _figures(values: Sequence[float]) -> str:
    p95 = sorted(values)[max(0, -(-len(values) * 95 // 100) - 1)]
    return f"{min(values):7.1f} {statistics.median(values):7.1f} {p95:7.1f}"


@contextmanager
def _storing() -> Iterator[None]:
    """While the block runs, another connection stores texts."""
    ended = threading.Event()

    def store() -> None:
        texts = _new_texts(10_000)
        while not ended.wait(5 / STORED_A_SECOND):
            _store([next(texts) for _ in range(5)])
        connections.close_all()

    thread = threading.Thread(target=store)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _new_texts(count: int) -> Iterator[tuple[str, list[str], list[float]]]:
    for contents, terms, vectors in Texts(seed=time.time_ns()).portions(count):
        yield from zip(contents, terms, vectors.tolist(), strict=True)


def _store(texts: Sequence[tuple[str, list[str], list[float]]]) -> None:
    memories = [
        Memory(content=content, visibility="owner", fact_key=uuid.uuid4().hex, terms=terms)
        for content, terms, _ in texts
    ]
    Memory.objects.bulk_create(memories)
    last = Message.objects.order_by("-received_at", "-order_num").first()
    assert last is not None
    messages = [
        Message(
            session_id=last.session_id,
            chat_id=last.chat_id,
            order_num=last.order_num + place,
            role="user",
            content=content,
            timestamp=timezone.now(),
            tokens=20,
            terms=terms,
        )
        for place, (content, terms, _) in enumerate(texts, 1)
    ]
    Message.objects.bulk_create(messages)
    given = [vector for _, _, vector in texts]
    MemoryEmbedding.objects.bulk_create(
        MemoryEmbedding(memory=row, model=MODEL, vector=vector)
        for row, vector in zip(memories, given, strict=True)
    )
    MessageEmbedding.objects.bulk_create(
        MessageEmbedding(message=row, model=MODEL, vector=vector)
        for row, vector in zip(messages, given, strict=True)
    )


def main() -> None:
    """Fills, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, parents=[KEEPING])
    parser.add_argument("--texts", type=int, default=10_000, help="memories, and messages")
    parser.add_argument("--rounds", type=int, default=20, help="recalls of each question")
    parser.add_argument("--beside", type=int, help="messages of other chats, added after that")
    options = parser.parse_args()
    with own_database():
        chat = Chat.objects.filter(whatsapp_chat="15550100123@c.us").first()
        if chat is None:
            started = time.perf_counter()
            chat = fill(options.texts)
            filled = time.perf_counter()
            model, _ = EmbeddingModel.objects.get_or_create(
                model_id=MODEL,
                defaults={
                    "kind": "none",
                    "dimensions": DIMENSIONS,
                    "state": "active",
                    "calibration_midpoint": 0.27,
                    "calibration_slope": 10.8,
                },
            )
            indexes_ensure(model)
            built = time.perf_counter() - filled
            print(f"filled in {filled - started:.0f} s, indexes of vectors in {built:.0f} s")
        print(f"{options.texts} memories and a chat of as many messages; {machine()}")
        asked = Asked(chat)
        measure(asked, options.rounds)
        if options.beside:
            add_beside(chat, options.beside)
            print(f"\nThe same beside {options.beside} messages of other chats; {machine()}")
            measure(asked, options.rounds)


if __name__ == "__main__":
    main()
