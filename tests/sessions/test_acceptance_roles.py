"""Roles and the feature flag of seed 002, by their ids."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from memories_app.models import Memory
from sessions_app.models import ChatSession, InboundDelivery, Message, Turn
from tests.events import edit, revocation
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from


def roles(world: World) -> list[str]:
    return list(Turn.objects.order_by("id").values_list("user_role", flat=True))


def test_ac_role_002_the_configured_id_is_the_godfather(world: World) -> None:
    world.say(GODFATHER, "hello")
    assert roles(world) == ["godfather"]
    assert "the owner of the business" in world.prompt()[0].content


def test_ac_role_002_the_match_is_exact(world: World) -> None:
    world.say(f"9{GODFATHER}", "hello")
    world.say(GODFATHER.replace("9@", "@"), "hello")
    assert roles(world) == ["client", "client"]


def test_ac_role_003_without_a_godfather_everyone_is_a_client_with_a_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """ERR-INTEGRATION-001 as well: the role that can't be told is the more restrictive one."""
    world.with_chat_memory(godfather=frozenset())
    with caplog.at_level(logging.WARNING):
        world.say(GODFATHER, "hello")

    assert roles(world) == ["client"]
    warned = [record for record in caplog.records if "GODFATHER_PHONE" in record.message]
    assert [record.levelname for record in warned] == ["WARNING"]
    assert GODFATHER in warned[0].message


def test_ac_flag_001_without_memory_the_message_alone_is_answered(world: World) -> None:
    world.with_rules(memory_enabled=False)

    assert world.say(CLIENT, "My name is Dana") == ["answer to: My name is Dana"]
    assert world.say(CLIENT, "What is my name?") == ["answer to: What is my name?"]

    assert [message.content for message in world.prompt()[1:]] == ["What is my name?"]
    assert ChatSession.objects.count() == Message.objects.count() == 0


@pytest.mark.parametrize("command", ["/remember TestCorp pays late", "/reset"])
def test_ac_flag_001_memory_commands_say_that_it_is_disabled(world: World, command: str) -> None:
    world.with_rules(memory_enabled=False)
    assert world.say(CLIENT, command) == ["Memory system is disabled"]
    assert Memory.objects.count() == 0


def test_ac_flag_001_nothing_of_what_was_said_is_kept(world: World) -> None:
    world.with_rules(memory_enabled=False)
    world.receive(message_from(CLIENT, "the secret word", raw={"text": "the secret word"}))
    assert InboundDelivery.objects.get().raw == {"text": "the secret word"}
    world.work()
    _nothing_holds("secret")
    assert Turn.objects.get().state == "sent"


@pytest.mark.parametrize("how", ["missed", "revoked", "edited afterwards", "not for us"])
def test_ac_flag_001_nothing_is_kept_where_no_answer_is_due_either(world: World, how: str) -> None:
    world.with_rules(memory_enabled=False)
    text = "the secret word"
    event = message_from(CLIENT, text)
    if how == "not for us":
        event = replace(event, from_business=True)
    world.receive(event)
    if how == "missed":
        world.with_answer_rules(max_answer_age=-world.dependencies.rules.max_answer_age)
    if how == "revoked":
        world.receive(revocation(event.provider_message_id))
    world.work()
    if how == "edited afterwards":
        world.receive(edit(event.provider_message_id, "the secret words"))
    _nothing_holds("secret")
    assert len(world.provider.sent) == (1 if how == "edited afterwards" else 0)


def _nothing_holds(word: str) -> None:
    rows = [*InboundDelivery.objects.values(), *Turn.objects.values()]
    assert rows
    assert word not in str(rows)


def test_without_memory_an_edited_message_is_answered_as_edited(world: World) -> None:
    world.with_rules(memory_enabled=False)
    event = message_from(CLIENT, "price of tea?")
    world.receive(event, edit(event.provider_message_id, "price of coffee?"))
    world.work()
    assert [sent.text for sent in world.provider.sent] == ["answer to: price of coffee?"]


def test_ac_flag_002_with_memory_history_and_memories_are_in_the_prompt(world: World) -> None:
    world.remember(GODFATHER, "TestCorp owes me ₪5,000 from invoice INV-001")
    world.say(GODFATHER, "I had coffee today")

    world.say(GODFATHER, "What's the status with TestCorp?")

    prompt = [message.content for message in world.prompt()]
    assert "TestCorp owes me ₪5,000 from invoice INV-001" in prompt[0]
    assert "I had coffee today" in prompt
    assert prompt[-1] == "What's the status with TestCorp?"


@pytest.mark.parametrize("setting", [True, False])
def test_the_flag_can_be_overridden_for_one_chat(world: World, setting: bool) -> None:
    world.with_rules(memory_enabled=setting)
    world.say(CLIENT, "first")
    chat = world.chat(CLIENT)
    chat.memory_enabled = not setting
    chat.save()

    world.say(CLIENT, "second")
    world.say(OTHER_CLIENT, "other")

    stored = [message.content for message in Message.objects.filter(role="user")]
    assert sorted(stored) == (["first", "other"] if setting else ["second"])
