"""A hundred thousand memories, and a chat of as many messages among a million: the words of a
question find what a pass over everything finds, and no table is read from end to end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories_app.ranking.facade import SCOPES, HeldScope, HeldTexts
from memories_app.search.visibility import memories_visible
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from sessions_app.models import Chat, Message
from sessions_app.recall.conversation_lines import LINES, messages_visible
from sessions_app.recall.facade import MEMORIES, MESSAGES, Viewer, recall
from tests.memories.wordy import Wordy, held_with, memories_fill, share_of_best
from tests.plans import plans_of, rows_scanned_in_sequence

pytestmark = [pytest.mark.scale, pytest.mark.django_db]

TOTAL = 100_000
CHATS = 10
A_SESSION = 200
ADD_CHATS = """
INSERT INTO sessions_app_chat (id, whatsapp_chat, provider, number_id, is_group, client_name,
    client_phone, language, created_at, updated_at)
SELECT gen_random_uuid(), number || '@c.us', 'cloud', '', false, '', '', '', now(), now()
FROM generate_series(1, %s) number
"""
ADD_SESSIONS = """
INSERT INTO sessions_app_chatsession (session_id, chat_id, status, created_at, last_active,
    expired_at, message_counter, total_tokens, window_start, summarized_until)
SELECT gen_random_uuid(), id, 'expired', now() + number * interval '1 day', now(), now(), %s,
    0, 1, 0
FROM sessions_app_chat, generate_series(1, %s) number
"""
ADD_MESSAGES = """
WITH texts AS (
    SELECT content, terms, term_count, row_number() OVER (ORDER BY fact_key) - 1 AS number
    FROM memories_app_memory
), sessions AS (
    SELECT session_id, chat_id,
           row_number() OVER (PARTITION BY chat_id ORDER BY created_at) - 1 AS place
    FROM sessions_app_chatsession
)
INSERT INTO sessions_app_message (message_id, session_id, chat_id, order_num, role, kind, content,
    sender, recipient, timestamp, received_at, tokens, was_received, delivery_status, provider,
    number_id, media, metadata, history, terms, term_count)
SELECT gen_random_uuid(), session_id, chat_id, 1 + number %% %s, 'user', 'text', content, '', '',
    now(), now(), 40, true, '', '', '', '{}', '{}', '[]', terms, term_count
FROM texts JOIN sessions ON place = number / %s
"""


@dataclass(frozen=True)
class Filled:
    wordy: Wordy
    chat: Chat

    def said(self) -> Any:
        return messages_visible(self.chat.pk)


@pytest.fixture(scope="module")
def filled(django_db_setup: None, django_db_blocker: Any) -> Iterator[Filled]:
    """Filled once; nothing is changed."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        wordy = memories_fill(TOTAL)
        cursor.execute(ADD_CHATS, [CHATS])
        cursor.execute(ADD_SESSIONS, [A_SESSION, TOTAL // A_SESSION])
        cursor.execute(ADD_MESSAGES, [A_SESSION, A_SESSION])
        cursor.execute("VACUUM ANALYZE")
        made = Filled(wordy, Chat.objects.get(whatsapp_chat="5@c.us"))
    yield made
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("TRUNCATE memories_app_memory, sessions_app_chat CASCADE")


def owners() -> Any:
    return memories_visible(is_owner=True, is_staff=False, chat_id=None)


def test_the_best_of_a_hundred_thousand_memories_are_found(filled: Filled) -> None:
    shares = [share_of_best(question, owners()) for question in filled.wordy.questions()]

    assert sum(shares) / len(shares) >= 0.98


def test_the_best_of_a_hundred_thousand_messages_are_found(filled: Filled) -> None:
    assert Message.objects.count() == CHATS * TOTAL
    scope = HeldScope(f"messages:{filled.chat.pk}", filled.said, "none", LINES)
    (index,) = SCOPES.open([scope])
    assert index is not None
    shares = [
        share_of_best(question, filled.said(), texts=HeldTexts(index))
        for question in filled.wordy.questions()
    ]

    assert sum(shares) / len(shares) >= 0.98


def test_an_index_finds_the_words_of_more_memories_than_are_held(filled: Filled) -> None:
    """PostgreSQL chooses it, but for a question of fifty words, of which most texts hold some."""
    for question in filled.wordy.questions():
        with CaptureQueriesContext(connection) as queries:
            held_with(question, owners())
        matching = plans_of(queries)[-1]
        is_read_whole = not any("&&" in query["sql"] for query in queries)
        assert (rows_scanned_in_sequence(matching) > 0) is is_read_whole, json.dumps(matching)[
            :3_000
        ]
        assert is_read_whole is (len(question.split()) > 50)


@pytest.mark.parametrize("source", [MEMORIES, MESSAGES])
def test_nothing_that_recall_asks_reads_a_table_from_end_to_end(
    filled: Filled, source: str
) -> None:
    """Once a scope is held. Reading the owner's, which is all memories, reads their table."""
    ask(filled, "Is anything there?", source)
    for question in filled.wordy.questions():
        with CaptureQueriesContext(connection) as queries:
            ask(filled, question, source)
        for plan in plans_of(queries):
            assert rows_scanned_in_sequence(plan) < 1_000, json.dumps(plan)[:3_000]


def ask(filled: Filled, question: str, source: str) -> None:
    recall(
        query=question,
        viewer=Viewer(user_role="godfather", chat_id=filled.chat.pk),
        embedder=WordLlamaEmbedder(),
        sources=[source],
        min_similarity=0.0,
    )
