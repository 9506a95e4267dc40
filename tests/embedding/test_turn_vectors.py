"""How often a turn calls the embedder."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.doubles.hashing_embedder import HashingEmbedder
from tests.world import CLIENT, GODFATHER, World

pytestmark = pytest.mark.django_db


class CountingEmbedder(HashingEmbedder):
    """Counts the calls for queries apart from those for passages."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[list[str]] = []

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        self.queries.append(list(texts))
        return super().embed(texts)


@pytest.fixture
def embedder(world: World) -> CountingEmbedder:
    counting = CountingEmbedder()
    world.use(embedder=counting)
    return counting


def test_a_turn_embeds_its_question_once(world: World, embedder: CountingEmbedder) -> None:
    world.remember(CLIENT, "The pool opens at eight")
    world.say(CLIENT, "/reset")
    embedder.queries.clear()
    world.say(CLIENT, "When does the pool open?")
    assert embedder.queries == [["When does the pool open?"]]
    assert "The pool opens at eight" in world.prompt()[0].content


def test_several_questions_are_one_call(world: World, embedder: CountingEmbedder) -> None:
    world.remember(GODFATHER, "The pool opens at eight")
    embedder.queries.clear()
    world.say(GODFATHER, "When does the pool open? And how much is a ticket for children?")
    assert len(embedder.queries) == 1


def test_nothing_known_nothing_embedded(world: World, embedder: CountingEmbedder) -> None:
    world.say(CLIENT, "When does the pool open?")
    assert embedder.queries == []
