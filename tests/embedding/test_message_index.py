"""The nearest messages of a large chat are found by an index, those of others exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories_app.models import EmbeddingModel
from memories_app.ranking import EXACTLY
from memories_app.vector_search import index_state
from memoryproject.foundation.integrations.embedders.base import Calibration
from sessions_app.embedding.maintenance import embeddings_tend, indexes_ensure, model_clear
from sessions_app.models import Chat, ChatSession, Message, MessageEmbedding
from sessions_app.recall.facade import MESSAGES, Viewer, recall

pytestmark = pytest.mark.django_db

LARGE, SMALL = EXACTLY + 200, 300
BY_INDEX = "vector::halfvec(3)"


class OnACircle:
    """An embedder that places "turn N" at N hundredths of a circle of three dimensions."""

    model_id = "circle"
    dimensions = 3
    calibration = Calibration(0.5, 10.0)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        turns = [float(text.rpartition(" ")[2].strip("?")) / 100 * math.tau for text in texts]
        return [[math.cos(turn), math.sin(turn), 0.1] for turn in turns]

    def coverage(self, text: str) -> float:
        return 1.0


@pytest.fixture
def model() -> EmbeddingModel:
    EmbeddingModel.objects.all().delete()
    return EmbeddingModel.objects.create(
        model_id=OnACircle.model_id,
        kind="none",
        dimensions=3,
        state="active",
        calibration_midpoint=0.5,
        calibration_slope=10.0,
    )


def chat_of(number: int) -> Chat:
    """A chat of so many messages whose vectors go around the circle, and none of their words."""
    now = timezone.now()
    chat = Chat.objects.create(whatsapp_chat=f"{number}@c.us", provider="console")
    session = ChatSession.objects.create(chat=chat, created_at=now, last_active=now)
    messages = Message.objects.bulk_create(
        Message(
            session=session,
            chat=chat,
            order_num=place + 1,
            role="user",
            content=f"saying {place}",
            timestamp=now - timedelta(minutes=number - place),
            received_at=now - timedelta(minutes=number - place),
            tokens=2,
            terms=["saying"],
            term_count=1,
        )
        for place in range(number)
    )
    vectors = OnACircle().embed([f"turn {100 * place / number}" for place in range(number)])
    MessageEmbedding.objects.bulk_create(
        MessageEmbedding(message=message, model=OnACircle.model_id, vector=vector)
        for message, vector in zip(messages, vectors, strict=True)
    )
    return chat


def nearest(chat: Chat) -> Iterator[int]:
    """Where on the circle those stand that are found for the vector at a quarter of it."""
    hits = recall(
        query="turn 25?",
        viewer=Viewer(user_role="client", chat_id=chat.pk),
        embedder=OnACircle(),
        sources=[MESSAGES],
        min_similarity=0.0,
    ).hits
    for hit in hits:
        yield int(hit.content.rpartition(" ")[2])


@pytest.mark.parametrize(("number", "by_index"), [(LARGE, True), (SMALL, False)])
def test_the_nearest_of_a_chat_are_found(
    model: EmbeddingModel, number: int, by_index: bool
) -> None:
    assert indexes_ensure(model) == 2
    chat = chat_of(number)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sessions_app_message, sessions_app_messageembedding")
    with CaptureQueriesContext(connection) as queries:
        found = list(nearest(chat))
    assert found
    assert all(abs(place / number - 0.25) < 0.01 for place in found)
    assert any(BY_INDEX in query["sql"] for query in queries) is by_index


def test_maintenance_makes_the_index_and_removes_it_with_its_model(model: EmbeddingModel) -> None:
    done = embeddings_tend(embedder=OnACircle(), now=timezone.now())
    assert done["indexes"] == 2
    assert index_state(model.model_id, MessageEmbedding).valid
    assert embeddings_tend(embedder=OnACircle(), now=timezone.now())["indexes"] == 0
    model_clear(model=model)
    assert not index_state(model.model_id, MessageEmbedding).exists
