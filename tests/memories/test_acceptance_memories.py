"""Seed 002's acceptance criteria and errors of memories, by their ids."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from uuid import UUID

import pytest
from django.db import connection

from memories_app.models import Memory, MemoryEmbedding
from memoryproject.foundation.integrations.embedders.openai_embedder import OpenAIEmbedder
from sessions_app.models import Turn
from sessions_app.recall.facade import Viewer, recall
from tests.loopback.openai_behaviours import fails
from tests.loopback.openai_server import OpenAIServer
from tests.world import CLIENT, GODFATHER, World

FAILED = "❌ Failed to store memory. Please try again."
NOTICE = (
    "⚠️ Memory system temporarily unavailable. Your message was processed without memory context."
)
FACT = "TestCorp owes me ₪5,000 from invoice INV-001"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(api_key="sample-key") as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    """What the embedder slept."""
    return []


@pytest.fixture
def openai_world(world: World, server: OpenAIServer, waits: list[float]) -> Iterator[World]:
    """The world with the OpenAI embedder, through HTTP."""
    embedder = OpenAIEmbedder("sample-key", server.base_url, timeout=10, sleep=waits.append)
    with closing(embedder):
        world.use(embedder=embedder)
        yield world


def test_ac_memory_001_it_stores_and_confirms(openai_world: World, server: OpenAIServer) -> None:
    assert openai_world.say(GODFATHER, "/remember TestCorp owes ₪5000") == [
        "✅ Remembered: TestCorp owes ₪5000"
    ]

    memory = Memory.objects.get()
    assert isinstance(memory.memory_id, UUID)
    assert (memory.content, memory.type, memory.source) == (
        "TestCorp owes ₪5000",
        "fact",
        "command",
    )
    assert memory.visibility == "owner"
    assert memory.source_message_id == Turn.objects.get().message_id
    assert memory.created_at.isoformat().endswith("+00:00")
    vector = MemoryEmbedding.objects.get(memory=memory)
    assert vector.model == "openai:text-embedding-3-small"
    assert server.embedding_bodies[0]["model"] == "text-embedding-3-small"


@pytest.mark.parametrize(
    "text", ["/remember", "/remember  \n", "/remember \u200b\u2060", "/remember \u3164"]
)
def test_remember_without_a_fact_says_how_to_use_it(world: World, text: str) -> None:
    (reply,) = world.say(GODFATHER, text)
    assert "/remember TestCorp pays within 30 days" in reply
    assert Memory.objects.count() == 0


def test_ac_memory_002_a_question_recalls_the_memory(world: World) -> None:
    world.remember(GODFATHER, f"{FACT}")

    world.say(GODFATHER, "What's the status with TestCorp?")

    turn = Turn.objects.latest("id")
    (hit,) = [hit for hit in turn.replay.recalled if hit["source"] == "memory"]
    assert hit["content"] == FACT
    assert hit["score"] >= 0.7
    assert hit["in_prompt"]
    assert FACT in world.prompt()[0].content


def test_ac_memory_004_without_memories_recall_is_empty(world: World) -> None:
    world.say(CLIENT, "hello")
    viewer = Viewer(user_role="client", chat_id=world.chat(CLIENT).pk)

    found = recall(
        query="What about TestCorp?", viewer=viewer, embedder=world.dependencies.embedder
    )

    assert (found.hits, found.degraded) == ([], False)
    assert world.say(CLIENT, "What about TestCorp?") == ["answer to: What about TestCorp?"]
    assert "Relevant Context" not in world.prompt()[0].content


def test_ac_error_002_without_embedder_words_decide_and_the_person_is_told(
    openai_world: World, server: OpenAIServer, waits: list[float]
) -> None:
    openai_world.remember(GODFATHER, FACT)
    server.script_embeddings(*[fails(500)] * 8)

    (reply,) = openai_world.say(GODFATHER, "What's the status with TestCorp?")

    assert reply == f"answer to: What's the status with TestCorp?\n\n{NOTICE}"
    assert FACT in openai_world.prompt()[0].content
    turn = Turn.objects.latest("id")
    assert turn.replay.left_out["recall_degraded"] is True
    assert waits[:3] == [1.0, 2.0, 4.0]


def test_ac_error_003_a_memory_that_cannot_be_embedded_is_not_confirmed(
    openai_world: World, server: OpenAIServer, waits: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    server.script_embeddings(*[fails(500)] * 4)

    with caplog.at_level(logging.ERROR):
        replies = openai_world.say(GODFATHER, f"/remember {FACT}")

    assert replies == [FAILED]
    # Four tries for the memory; afterwards the answer's own messages are embedded.
    assert waits == [1.0, 2.0, 4.0]
    assert Memory.objects.count() == MemoryEmbedding.objects.count() == 0
    assert "was not stored" in caplog.text
    assert FACT not in caplog.text, "the log holds a hash, not the content (ERR-MEMORY-004)"
    assert Turn.objects.get().error


def test_ac_error_003_in_hebrew(openai_world: World, server: OpenAIServer) -> None:
    server.script_embeddings(*[fails(500)] * 4)
    (reply,) = openai_world.say(GODFATHER, "/remember החשבונית לא שולמה")
    assert reply.startswith("❌ שמירת הזיכרון נכשלה")


def test_err_memory_004_storage_that_fails_is_told(world: World) -> None:
    """The table refuses the row: nothing is confirmed, nothing is stored."""
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE memories_app_memory ADD CONSTRAINT full_disk CHECK (false) NOT VALID"
        )
    assert world.say(GODFATHER, f"/remember {FACT}") == [FAILED]
    assert Memory.objects.count() == 0


def test_err_memory_003_a_failing_search_is_tried_twice_and_leaves_the_answer(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.remember(GODFATHER, FACT)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE memories_app_memory RENAME TO out_of_reach")

    logger = "sessions_app.recall.recall_steps"
    with caplog.at_level(logging.ERROR, logger=logger):
        (reply,) = world.say(GODFATHER, "What's the status with TestCorp?")

    assert reply == f"answer to: What's the status with TestCorp?\n\n{NOTICE}"
    tries = [
        record.message
        for record in caplog.records
        if record.name == "sessions_app.recall.recall_steps"
    ]
    assert tries == ["Recall failed (try 1 of 2).", "Recall failed (try 2 of 2)."]


def test_longterm_disabled_switches_recall_and_remember_off_alone(world: World) -> None:
    world.remember(GODFATHER, FACT)
    world.with_answer_rules(longterm_enabled=False)

    world.say(GODFATHER, "What's the status with TestCorp?")
    assert FACT not in world.prompt()[0].content
    assert Turn.objects.latest("id").replay.recalled == []
    assert world.say(GODFATHER, "/remember more") == ["Memory system is disabled"]
    assert [message.content for message in world.messages(GODFATHER)][-2:] == [
        "/remember more",
        "Memory system is disabled",
    ]
