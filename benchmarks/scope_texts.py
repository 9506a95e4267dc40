"""A large scope for benchmarks: memories of the owner and messages of one chat, with made-up texts.

Words are as frequent as in natural language, and a few are in a third of all texts. Vectors are in
clusters, as those of texts are.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from bulk_rows import rows_add, without_checks
from django.db import connection
from django.utils import timezone

from memoryproject.foundation.text.terms import index_terms
from sessions_app.models import Chat, ChatSession
from sessions_app.models.sessions import SessionStatus
from tests.embedding.clusters import Clusters, Matrix, units

MODEL = "made-up"
DIMENSIONS = 384
VOCABULARY = 200_000
PORTION = 50_000
STEMMED = 3_000
MEMORY_TABLES = ("memories_app_memory", "memories_app_memoryembedding")
MESSAGE_TABLES = ("sessions_app_message", "sessions_app_messageembedding")
# Messages of each session, and of each chat beside the one that is asked.
SESSION_SIZE = 200
CHAT_SIZE = 1_000
# The shares of the ranks 1, 2, ... fall slower at first than by Zipf's law: the most frequent words
# of all are not indexed.
OFFSET = 4
SYLLABLES = ("ba", "ko", "ri", "mu", "te", "lo", "sha", "vi", "ne", "da", "pra", "sto", "gil", "fe")


def word_of(rank: int) -> str:
    """Return the word of this rank, the same in each run."""
    number, syllables = rank + len(SYLLABLES), []
    while number:
        number, place = divmod(number, len(SYLLABLES))
        syllables.append(SYLLABLES[place])
    return "".join(syllables)


class Texts:
    """Made-up texts with their index terms and vectors, the same for the same seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        self._clusters = Clusters(DIMENSIONS, seed)
        shares = 1 / (np.arange(VOCABULARY) + 1 + OFFSET)
        self._until = np.cumsum(shares / shares.sum())
        self._words = [word_of(rank) for rank in range(VOCABULARY)]
        self._terms: list[list[str] | None] = [None] * VOCABULARY

    def portions(self, count: int) -> Iterator[tuple[list[str], list[list[str]], Matrix]]:
        """Yield contents, terms and vectors of ``count`` texts."""
        for first in range(0, count, PORTION):
            size = min(PORTION, count - first)
            lengths = self._random.integers(8, 31, size)
            drawn = np.searchsorted(self._until, self._random.random(int(lengths.sum())))
            drawn = np.minimum(drawn, VOCABULARY - 1)
            texts = np.split(drawn, np.cumsum(lengths)[:-1])
            contents = [" ".join(map(self._words.__getitem__, ranks)) for ranks in texts]
            terms = [self._terms_of(ranks.tolist()) for ranks in texts]
            yield contents, terms, self._random.permutation(self._clusters.of(size))

    def _terms_of(self, ranks: Sequence[int]) -> list[str]:
        found: dict[str, None] = {}
        for rank in ranks:
            own = self._terms[rank]
            if own is None:
                word = self._words[rank]
                # Stemming so many words would take minutes.
                own = self._terms[rank] = index_terms(word) if rank < STEMMED else [word]
            found.update(dict.fromkeys(own))
        return list(found)


def beside(vectors: Matrix, chance: np.random.Generator) -> Matrix:
    """Return vectors of questions: near to these, equal to none."""
    noise = chance.normal(size=vectors.shape) / np.sqrt(DIMENSIONS)
    return units(vectors + 0.5 * noise)


def fill(count: int) -> Chat:
    """Make so many memories of the owner, and messages of the chat that is returned."""
    chat = Chat.objects.create(whatsapp_chat="15550100123@c.us", provider="console")
    now = timezone.now()
    ChatSession.objects.bulk_create(
        ChatSession(
            chat=chat, created_at=now, last_active=now, expired_at=now, status=SessionStatus.EXPIRED
        )
        for _ in range(-(-count // SESSION_SIZE))
    )
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE made (place int, id uuid, content text, terms text[])")
        cursor.execute("CREATE TEMP TABLE made_vectors (place int, vector vector)")
        place = 0
        for contents, terms, vectors in Texts().portions(count):
            with cursor.copy("COPY made FROM STDIN") as copy:
                for number, (content, own) in enumerate(zip(contents, terms, strict=True), place):
                    copy.write_row((number, uuid.UUID(int=random.getrandbits(128)), content, own))
            with cursor.copy("COPY made_vectors FROM STDIN (FORMAT binary)") as copy:
                copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8) + _binary(vectors, place))
            place += len(contents)
        cursor.execute("ANALYZE made, made_vectors")
    _add_memories()
    _add_messages(chat)
    _settle()
    return chat


def _binary(vectors: Matrix, first: int) -> bytes:
    """Return rows of a place and a vector as COPY reads them."""
    names: list[Any] = [("fields", ">i2"), ("size", ">i4"), ("place", ">i4"), ("length", ">i4")]
    names += [("dimensions", ">i2"), ("unused", ">i2"), ("vector", ">f4", (DIMENSIONS,))]
    rows: Any = np.zeros(len(vectors), np.dtype(names))
    rows["fields"], rows["size"], rows["length"] = 2, 4, 4 + 4 * DIMENSIONS
    rows["place"] = np.arange(first, first + len(vectors))
    rows["dimensions"], rows["vector"] = DIMENSIONS, vectors
    return bytes(rows.tobytes()) + b"\xff\xff"


def _add_memories() -> None:
    values = {
        "memory_id": "id",
        "content": "content",
        "content_hash": "md5(content)",
        "visibility": "'owner'",
        "fact_key": "id::text",
        "terms": "terms",
        "term_count": "cardinality(terms)",
        "created_at": "now() - interval '1 minute' * (1000000 - place)",
    }
    vector = {"memory_id": "id", "model": f"'{MODEL}'", "vector": "vector"}
    with without_checks(MEMORY_TABLES):
        rows_add("Memory", "made ORDER BY place", values)
        rows_add("MemoryEmbedding", "made JOIN made_vectors USING (place) ORDER BY place", vector)


def _add_messages(chat: Chat) -> None:
    sessions = (
        "(SELECT session_id, row_number() OVER (ORDER BY session_id) - 1 AS number"
        " FROM sessions_app_chatsession) AS session"
    )
    said = "now() - interval '1 minute' * (1000000 - place)"
    values = {
        "message_id": "id",
        "session_id": "session_id",
        "chat_id": "%s",
        "order_num": f"place %% {SESSION_SIZE} + 1",
        "role": "CASE place %% 2 WHEN 0 THEN 'user' ELSE 'assistant' END",
        "content": "content",
        "timestamp": said,
        "received_at": said,
        "tokens": "20",
        "terms": "terms",
        "term_count": "cardinality(terms)",
    }
    source = f"made JOIN {sessions} ON session.number = place / {SESSION_SIZE} ORDER BY place"
    vector = {"message_id": "id", "model": f"'{MODEL}'", "vector": "vector"}
    with without_checks(MESSAGE_TABLES):
        rows_add("Message", source, values, [chat.pk])
        rows_add("MessageEmbedding", "made JOIN made_vectors USING (place) ORDER BY place", vector)


# One row for each message of the first ones of a chat, and each other chat.
_COPIED = """
(SELECT m.*, c.id AS other_chat, s.session_id AS other_session, row_number() OVER () AS place,
        md5(c.id::text || m.message_id::text)::uuid AS other_id
 FROM sessions_app_chat c
 JOIN sessions_app_chatsession s ON s.chat_id = c.id
 JOIN (SELECT *, row_number() OVER (ORDER BY received_at) AS number
       FROM (SELECT * FROM sessions_app_message WHERE chat_id = %s LIMIT %s) some) m ON true
 WHERE c.id <> m.chat_id) AS copied
"""


def add_beside(chat: Chat, messages: int) -> None:
    """Add other chats with messages of this one, ``CHAT_SIZE`` in each, and their vectors."""
    now = timezone.now()
    chats = Chat.objects.bulk_create(
        Chat(whatsapp_chat=f"1555{number:08}@c.us", provider="console")
        for number in range(-(-messages // CHAT_SIZE))
    )
    ChatSession.objects.bulk_create(
        ChatSession(chat=other, created_at=now, last_active=now) for other in chats
    )
    same = ("role", "content", "timestamp", "received_at", "tokens", "terms", "term_count")
    ids = {"message_id": "other_id", "chat_id": "other_chat", "session_id": "other_session"}
    copied = [chat.pk, CHAT_SIZE]
    with without_checks(MESSAGE_TABLES):
        rows_add("Message", _COPIED, {**ids, **{s: s for s in same}, "order_num": "number"}, copied)
        vectors = f"{_COPIED} JOIN sessions_app_messageembedding e USING (message_id)"
        near = {"message_id": "other_id", "model": "model", "vector": "vector"}
        rows_add("MessageEmbedding", vectors, near, copied)
    _settle()


def _settle() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
