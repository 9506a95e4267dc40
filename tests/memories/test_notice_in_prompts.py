"""The notice below an answer is the system's: the model never reads it as its own words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from sessions_app.conversations.phrases import text_for
from sessions_app.models import Message
from sessions_app.summaries.summarizer import Summarizer
from tests.sessions.summing import summaries
from tests.world import CLIENT, World, summing_up


class BrokenEmbedder(WordLlamaEmbedder):
    """Fails as a server does that is out of reach."""

    def coverage(self, text: str) -> float:
        return 1.0

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise EmbedderError("out of reach")


@pytest.mark.parametrize(
    ("language", "fact", "question"),
    [
        ("en", "TestCorp owes me 5,000", "What is the status with TestCorp?"),
        ("he", "החוב של טסטקורפ הוא 5,000", "מה הסטטוס של טסטקורפ?"),
    ],
)
def test_only_the_person_is_told(world: World, language: str, fact: str, question: str) -> None:
    world.remember(CLIENT, fact)
    world.use(embedder=BrokenEmbedder())
    notice = text_for("memory_unavailable", language)
    (reply,) = world.say(CLIENT, question)
    assert reply.endswith(f"\n\n{notice}")
    # It is stored as it was sent, for staff and exports.
    assert Message.objects.filter(content__endswith=notice).exists()
    world.say(CLIENT, question)
    _system, *history = world.prompt()
    assert f"answer to: {question}" in [line.content for line in history]
    assert notice not in str([line.content for line in world.prompt()])


def test_what_is_recalled_and_summed_up_is_without_it(world: World) -> None:
    embedder = world.dependencies.embedder
    world.use(embedder=BrokenEmbedder())
    notice = text_for("memory_unavailable", "en")
    world.say(CLIENT, "The pallets of TestCorp stand in hall 7 beside the gate")
    world.use(embedder=embedder)
    world.summarizing(2, summarizer=Summarizer(chat_model=world.dependencies.chat_model))
    world.sum_up(CLIENT)
    assert summaries()
    requests = world.dependencies.chat_model.requests  # type: ignore[attr-defined]
    (asked,) = (request for request in requests if summing_up(request))
    assert "beside the gate" in asked.messages[-1].content
    assert notice not in asked.messages[-1].content
    world.say(CLIENT, "/reset")
    world.say(CLIENT, "Where do the pallets of TestCorp stand?")
    assert "hall 7" in world.prompt()[0].content
    assert "Memory system" not in world.prompt()[0].content
    assert notice not in str([line.content for line in world.prompt()])
