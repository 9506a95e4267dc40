"""A role is computed from the settings wherever it is used, never from what a turn recorded."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.whatsapp.base import SendError
from sessions_app.conversations.session_lifecycle import session_read
from sessions_app.limits.facade import NOT_OWNERS
from sessions_app.models import OutboundPart, Turn
from sessions_app.turns.prompt_context import context_make
from tests.api.calling import Api
from tests.sessions.test_trials import tried
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db

SECRET = "The vault code of the business is 7741"
QUESTION = "What is the vault code of the business?"


def now_client(world: World) -> None:
    """What a restart with another GODFATHER_PHONE does."""
    world.with_chat_memory(godfather=frozenset({OTHER_CLIENT}))


def context_of(world: World, whatsapp_chat: str) -> Any:
    found = session_read(world.session(whatsapp_chat).pk)
    assert found is not None
    return context_make(
        found=found, dependencies=world.dependencies, query=QUESTION, now=timezone.now()
    )


def memories_in(context: Any) -> list[str]:
    return [entry["content"] for entry in context.memories if entry["source"] == "memory"]


def test_a_removed_number_gets_no_owner_memory_in_its_context(world: World) -> None:
    world.remember(GODFATHER, SECRET)
    world.say(GODFATHER, "hello")
    before = context_of(world, GODFATHER)
    assert memories_in(before) == [SECRET]
    assert "the owner of the business" in before.messages[0]["content"]

    now_client(world)

    after = context_of(world, GODFATHER)
    assert memories_in(after) == []
    assert "a client of the business" in after.messages[0]["content"]


@pytest.mark.parametrize(
    "text", [QUESTION, "/memories", "/search vault code", "/export", "/forget vault code"]
)
def test_what_waits_in_the_queue_is_answered_by_the_role_of_today(world: World, text: str) -> None:
    world.remember(OTHER_CLIENT, "I am the one with the boat")
    world.with_chat_memory(godfather=frozenset({GODFATHER, OTHER_CLIENT}))
    world.remember(OTHER_CLIENT, SECRET)
    world.receive(message_from(GODFATHER, text))
    assert Turn.objects.latest("id").user_role == "godfather"

    now_client(world)
    world.work()

    assert SECRET not in world.provider.sent[-1].text
    turn = Turn.objects.latest("id")
    assert turn.user_role == "client"
    assert SECRET not in str([turn.replay.prompt, turn.replay.recalled, turn.replay.shown])


def test_an_added_number_is_the_owner_at_once(world: World) -> None:
    world.remember(GODFATHER, SECRET)
    world.say(CLIENT, "hello")
    world.receive(message_from(CLIENT, QUESTION))

    world.with_chat_memory(godfather=frozenset({GODFATHER, CLIENT}))

    assert memories_in(context_of(world, CLIENT)) == [SECRET]
    world.work()
    assert Turn.objects.latest("id").user_role == "godfather"
    assert SECRET in world.prompt()[0].content


def test_a_stored_answer_of_the_owner_is_not_sent_to_who_is_no_owner(world: World) -> None:
    world.remember(GODFATHER, SECRET)
    asked = message_from(GODFATHER, QUESTION)
    world.provider.fail_next(*(SendError("down") for _ in range(4)))
    world.receive(asked)
    world.work()
    turn = world.turn_of(asked.provider_message_id)
    assert turn.state == "replied"
    Turn.objects.update(not_before=None)
    sent = len(world.provider.sent)

    now_client(world)
    world.work()

    assert len(world.provider.sent) == sent
    turn.refresh_from_db()
    assert turn.state == "refused"
    assert turn.error == ErrorText(NOT_OWNERS)
    assert not OutboundPart.objects.filter(turn=turn).exclude(content="").exists()


def test_an_address_that_was_linked_makes_its_chat_the_owners(world: World) -> None:
    world.say(CLIENT, "hello")
    chat = world.chat(CLIENT)
    chat.addresses.create(provider="cloud", address="972501234567@bsuid")
    world.with_chat_memory(godfather=frozenset({"972501234567@bsuid"}))
    assert world.rules.chat_memory.role_in(chat) == "godfather"
    chat.is_group = True
    assert world.rules.chat_memory.role_in(chat) == "client"


@pytest.mark.parametrize("is_still_the_owners", [True, False])
def test_a_trial_for_a_removed_number(world: World, is_still_the_owners: bool) -> None:
    world.remember(GODFATHER, SECRET)
    world.say(GODFATHER, QUESTION)
    asked = Turn.objects.latest("id")
    memory = asked.replay.recalled[0]["id"]
    if not is_still_the_owners:
        now_client(world)
    for wanted in ({"memories": "then"}, {"memories": "chosen", "chosen": [memory]}):
        _trial, system = tried(world, asked, **wanted)
        assert (SECRET in system) is is_still_the_owners


def test_over_http_a_removed_number_is_a_client(api: Api, world: World, settings: Any) -> None:
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    world.remember(GODFATHER, SECRET)
    world.say(GODFATHER, QUESTION)
    path = f"sessions/{world.session(GODFATHER).pk}"

    def shown() -> tuple[str, Any, Any]:
        context = api.post(f"{path}/context/", {"query": QUESTION}).json()
        body = {"query": QUESTION, "whatsapp_chat": GODFATHER, "sources": ["memories"]}
        recalled = api.post("memories/recall/", body).json()["results"]
        return api.get(f"{path}/").json()["user_role"], context["memories"], recalled

    role, memories, recalled = shown()
    assert (role, bool(memories), bool(recalled)) == ("godfather", True, True)
    settings.GODFATHER_PHONE = frozenset()
    assert shown() == ("client", [], [])
