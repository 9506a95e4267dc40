"""The owner and known people don't wait behind a flood of strangers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from memoryproject.foundation.integrations.llm.base import ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.limits.answer_limits import KNOWN_AFTER
from sessions_app.models import Turn
from sessions_app.models.limits import Standing
from sessions_app.turns.turn_claims import turn_claim
from tests.limits.test_access import decide
from tests.sessions.test_answering import answerer_of
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
STRANGERS = [f"155502{number:05}@c.us" for number in range(5)]


def asked(world: World) -> list[str]:
    """The questions, in the order in which the model was asked."""
    model = world.dependencies.chat_model
    return [request.messages[-1].content for request in model.requests]  # type: ignore[attr-defined]


def meanwhile(world: World, happens: Callable[[], None]) -> None:
    """Let something happen while the first answer is made."""

    def script(request: ChatRequest) -> str:
        if len(model.requests) == 1:
            happens()
        return "answer"

    model = ScriptedChatModel(script)
    world.use(chat_model=model)


def flood(world: World) -> None:
    """Many strangers write."""
    for number, stranger in enumerate(STRANGERS):
        world.receive(message_from(stranger, f"stranger {number}"))


def work(world: World) -> None:
    """Answer as one thread does."""
    answerer = answerer_of(world)
    while answerer.answer_next():
        pass


def known_before(world: World, whatsapp_chat: str) -> None:
    """Answer somebody, and let some hours pass."""
    world.say(whatsapp_chat, "Hello")
    Turn.objects.update(created_at=timezone.now() - KNOWN_AFTER - timedelta(minutes=1))


def test_the_owner_waits_for_one_answer_of_many(world: World) -> None:
    flood(world)
    meanwhile(world, lambda: world.receive(message_from(GODFATHER, "the owner")))
    work(world)
    assert asked(world) == ["stranger 0", "the owner", *(f"stranger {n}" for n in range(1, 5))]


def test_so_do_people_who_were_answered_before_and_those_whom_staff_allow(world: World) -> None:
    known_before(world, CLIENT)
    world.say(OTHER_CLIENT, "Hello")
    decide(world, str(Standing.ALLOWED), OTHER_CLIENT)
    flood(world)

    def write() -> None:
        for chat, text in ((CLIENT, "known"), (OTHER_CLIENT, "allowed"), (CLIENT, "known again")):
            world.receive(message_from(chat, text))

    meanwhile(world, write)
    work(world)
    assert asked(world)[:4] == ["stranger 0", "known", "allowed", "known again"]
    assert len(asked(world)) == len(STRANGERS) + 3


def test_between_the_messages_of_one_stranger_too(world: World) -> None:
    for number in range(5):
        world.receive(message_from(CLIENT, f"flood {number}"))
    meanwhile(world, lambda: world.receive(message_from(GODFATHER, "the owner")))
    work(world)
    assert asked(world)[:3] == ["flood 0", "the owner", "flood 1"]


def test_known_chats_are_answered_in_the_order_of_the_queue(world: World) -> None:
    for chat in (CLIENT, OTHER_CLIENT):
        world.say(chat, "Hello")
    known_before(world, OTHER_CLIENT)
    meanwhile(world, lambda: None)
    world.receive(message_from(CLIENT, "first"), message_from(GODFATHER, "second"))
    work(world)
    assert asked(world) == ["first", "second"]


def test_a_known_chat_that_another_worker_answers_is_left_to_it(world: World) -> None:
    known_before(world, OTHER_CLIENT)
    world.receive(message_from(OTHER_CLIENT, "one"), message_from(OTHER_CLIENT, "two"))
    turn_claim(chat_id=world.chat(OTHER_CLIENT).pk)
    world.receive(message_from(CLIENT, "stranger"))
    meanwhile(world, lambda: None)
    work(world)
    assert asked(world) == ["stranger"]


def test_strangers_among_themselves_stay_in_order(world: World) -> None:
    flood(world)
    meanwhile(world, lambda: world.receive(message_from(CLIENT, "another stranger")))
    work(world)
    assert asked(world) == [f"stranger {number}" for number in range(5)] + ["another stranger"]
