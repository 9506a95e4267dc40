"""Measures what recall finds in long conversations: run from the project's root.

    python benchmarks/measure_conversations.py --data CONVERSATIONS.json

The conversations are in LoCoMo's form. Each becomes a chat with its turns as past messages,
stored through the product's own services in a database of its own, in a temporary folder. Every
question that something answers is asked through ``recall``. Prints recall@5, @10 and @20, the
mean share of a question's evidence among the first results, for each category, and what is left
of it without parts of the search.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

from own_database import own_database

# isort: split

from conversations import CATEGORIES, Conversation, Question, read_conversations
from past_chats import conversation_store
from pgvector.django import CosineDistance

from memories_app.ranking.facade import (
    SCOPES,
    HeldScope,
    HeldTexts,
    prepare_query,
    rank,
    search_words,
)
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.retrieval.message_features import BY_WORDS, WITH_VECTORS, Scorer
from memoryproject.foundation.retrieval.subqueries import query_parts
from sessions_app.models import Chat, Message, MessageEmbedding
from sessions_app.recall.conversation_lines import LINES, messages_visible
from sessions_app.recall.facade import MESSAGES, Viewer, recall
from sessions_app.recall.message_ranking import MessageQuestion, Scorers, rank_messages, topics_of

FIRST = (5, 10, 20)
Search = Callable[[str, Chat], list[UUID]]


class BlindEmbedder(WordLlamaEmbedder):
    """Knows no language."""

    def coverage(self, text: str) -> float:
        """See Embedder.coverage."""
        return 0.0


EMBEDDER = WordLlamaEmbedder()


def store(conversation: Conversation, number: int) -> tuple[Chat, list[UUID]]:
    """The conversation as a chat; the ids of its messages by the numbers of its turns."""
    return conversation_store(conversation, f"{number}@g.us", EMBEDDER)


def as_in_use(question: str, chat: Chat, embedder: Embedder = EMBEDDER) -> list[UUID]:
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


def by_words(question: str, chat: Chat) -> list[UUID]:
    """As for a language that the embedder doesn't know."""
    return as_in_use(question, chat, BlindEmbedder())


def by_vectors(question: str, chat: Chat) -> list[UUID]:
    """The nearest vectors, and nothing else."""
    (vector,) = EMBEDDER.embed([question])
    said = messages_visible(chat.pk)
    near = MessageEmbedding.objects.filter(message__in=said).order_by(
        CosineDistance("vector", vector)
    )
    return list(near.values_list("message_id", flat=True)[: max(FIRST)])


def by_itself(question: str, chat: Chat) -> list[UUID]:
    """Each message by its own words and vector, as memories are ranked."""
    texts = held(chat)
    asked, _, _ = prepare_query(query_parts(question), EMBEDDER)
    return texts.ids(rank(asked, texts, top_k=max(FIRST)).texts)


def held(chat: Chat) -> HeldTexts:
    """The chat's messages in memory, as recall searches them."""
    said = partial(messages_visible, chat.pk)
    scope = HeldScope(f"messages:{chat.pk}", said, EMBEDDER.model_id, LINES)
    (index,) = SCOPES.open([scope])
    if index is None:
        raise RuntimeError("The messages of a chat are always kept in memory.")
    return HeldTexts(index)


def without(*names: str) -> Search:
    """As in use, but for some kinds of evidence."""

    def blinded(judge: Scorer) -> Scorer:
        return replace(judge, weights=replace(judge.weights, **dict.fromkeys(names, 0.0)))

    judges = Scorers(blinded(WITH_VECTORS), blinded(BY_WORDS))

    def search(question: str, chat: Chat) -> list[UUID]:
        texts = held(chat)
        asked = query_parts(question)
        found = search_words(asked, texts)
        topics = topics_of(asked, found)
        prepared, vectors, _ = prepare_query(asked, EMBEDDER, topics=topics)
        last = Message.objects.filter(chat=chat).latest("timestamp").timestamp
        to_said = MessageQuestion(prepared, vectors, found, last)
        lines = rank_messages(to_said, texts, judges=judges)
        best = texts.ordered(lines.rows, lines.scores, max(FIRST))
        return texts.ids(lines.rows[best])

    return search


SEARCHES: dict[str, Search] = {
    "as in use": as_in_use,
    "without speakers": without("speaker"),
    "without time and dates": without("time", "period"),
    "without the lines around": without("together", "topic_around"),
    "without vectors": by_words,
    "each message by itself": by_itself,
    "vectors alone": by_vectors,
}


def recall_at(k: int, question: Question, found: Sequence[UUID], ids: Sequence[UUID]) -> float:
    """The share of the evidence among the first ``k``."""
    right = {ids[number] for number in question.evidence}
    return len(right & set(found[:k])) / len(right)


def measure(search: Search, stored: Sequence[tuple[Conversation, Chat, list[UUID]]]) -> None:
    """Asks everything and prints a line for all questions and one for each category."""
    shares: dict[int, list[list[float]]] = {category: [] for category in CATEGORIES}
    started = time.perf_counter()
    for conversation, chat, ids in stored:
        for question in conversation.questions:
            found = search(question.text, chat)
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
    parser.add_argument("--no-ablation", action="store_true", help="only recall as it is in use")
    options = parser.parse_args()
    with own_database():
        conversations = read_conversations(options.data)
        stored = [
            (conversation, *store(conversation, number))
            for number, conversation in enumerate(conversations, start=1)
        ]
        turns = sum(len(conversation.turns) for conversation in conversations)
        print(f"{len(stored)} conversations of {turns} turns, embedder {EMBEDDER.model_id}")
        for name, search in SEARCHES.items():
            print(f"{name}:")
            measure(search, stored)
            if options.no_ablation:
                break


if __name__ == "__main__":
    main()
