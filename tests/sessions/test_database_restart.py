"""The connection to the database ends while an answer is made, as in a restart of PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from memoryproject.foundation.integrations.llm.base import ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.models import Turn
from tests.database import break_connection
from tests.sessions.invariants import check_all
from tests.world import CLIENT, World, message_from


@pytest.fixture
def breaking(world: World) -> Callable[[int], None]:
    """Lets the first calls of the chat model end the connection, as many as are asked for."""

    def prepare(times: int) -> None:
        left = [None] * times

        def answer(request: ChatRequest) -> str:
            if left:
                left.pop()
                break_connection()
            return f"answer to: {request.messages[-1].content}"

        world.dependencies = replace(world.dependencies, chat_model=ScriptedChatModel(answer))

    return prepare


@pytest.mark.django_db(transaction=True)
def test_the_answer_is_made_again_at_once_and_not_when_the_lease_ends(
    world: World, breaking: Callable[[int], None]
) -> None:
    breaking(1)
    world.receive(message_from(CLIENT, "Are you there?"))
    world.receive(message_from(CLIENT, "And now?"))
    world.work()
    assert [part.text for part in world.provider.sent] == [
        "answer to: Are you there?",
        "answer to: And now?",
    ]
    first = Turn.objects.earliest("id")
    assert (first.state, first.attempts, first.lease_token) == ("sent", 2, None)
    check_all()


@pytest.mark.django_db(transaction=True)
def test_a_turn_that_ends_each_connection_gets_an_apology(
    world: World, breaking: Callable[[int], None]
) -> None:
    breaking(10)
    world.receive(message_from(CLIENT, "Break it"))
    world.work()
    (sent,) = world.provider.sent
    assert sent.text.startswith("Sorry")
    assert [each.state for each in Turn.objects.order_by("id")] == ["deferred", "sent"]
