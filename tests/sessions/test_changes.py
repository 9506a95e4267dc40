"""Messages that are edited, revoked and reacted to, in any order of arrival."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.core import serializers

from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.events import (
    InboundMessage,
    Media,
    MessageEdited,
    MessageRevoked,
    Party,
    Reaction,
)
from sessions_app.models import InboundDelivery, Message, Turn
from sessions_app.models.chats import Limits
from tests import events
from tests.world import CLIENT, OTHER_CLIENT, World, message_from


def edit(message: InboundMessage, text: str) -> MessageEdited:
    return events.edit(message.provider_message_id, text)


def revoke(message: InboundMessage) -> MessageRevoked:
    return events.revocation(message.provider_message_id)


def react(message: InboundMessage, emoji: str) -> Reaction:
    return events.reaction(message.provider_message_id, emoji)


def stored(message: InboundMessage) -> Message:
    return Message.objects.get(provider_message_id=message.provider_message_id)


def whole_database() -> str:
    """Every row of our own tables as text."""
    rows = [
        serializers.serialize("json", model._default_manager.all(), ensure_ascii=False)
        for app in ("sessions_app", "memories_app", "django_q")
        for model in apps.get_app_config(app).get_models()
    ]
    return json.dumps(rows, ensure_ascii=False)


@pytest.fixture
def message() -> InboundMessage:
    return message_from(CLIENT, "wrap it in green paper")


def test_an_edit_keeps_the_old_text(world: World, message: InboundMessage) -> None:
    world.receive(message)
    world.work()
    world.receive(edit(message, "wrap it in red paper"))
    world.work()
    now = stored(message)
    assert now.content == "wrap it in red paper"
    assert [entry["content"] for entry in now.history] == ["wrap it in green paper"]
    assert now.edited_at is not None
    assert now.session.total_tokens == sum(
        Message.objects.filter(session=now.session).values_list("tokens", flat=True)
    )
    assert len(world.provider.sent) == 1
    world.say(CLIENT, "Which colour?")
    said = [line.content for line in world.prompt()[1:]]
    assert said[0] == "[edited since]\nwrap it in red paper"


def test_an_edit_before_the_answer_is_answered(world: World, message: InboundMessage) -> None:
    world.receive(message, edit(message, "wrap it in red paper"))
    world.work()
    assert world.provider.sent[0].text == "answer to: wrap it in red paper"


def test_a_revoked_text_is_gone_everywhere(world: World, message: InboundMessage) -> None:
    world.use(chat_model=ScriptedChatModel(lambda _: "Fine"))
    world.receive(message)
    world.work()
    world.receive(edit(message, "wrap it in purple paper"))
    world.say(CLIENT, "Which colour did I say?")
    assert "purple paper" in whole_database()
    world.receive(revoke(message))
    left = whole_database()
    assert "green paper" not in left
    assert "purple paper" not in left
    now = stored(message)
    assert (now.content, now.history, now.terms) == ("", [], [])
    assert now.revoked_at is not None
    assert not now.embeddings.exists()
    world.say(CLIENT, "And now?")
    assert [line.content for line in world.prompt()[1:]] == [
        "Fine",
        "Which colour did I say?",
        "Fine",
        "And now?",
    ]


def test_a_revoked_message_is_not_answered(world: World, message: InboundMessage) -> None:
    world.receive(message, revoke(message))
    world.work()
    assert world.provider.sent == []
    assert Turn.objects.get().state == "cancelled"


def test_an_edit_brings_nothing_revoked_back(world: World, message: InboundMessage) -> None:
    world.receive(message, revoke(message), edit(message, "I am back"))
    assert stored(message).content == ""


@pytest.mark.parametrize("early", ["edit", "revoke", "reaction"])
def test_an_early_change_is_applied_later(
    world: World, message: InboundMessage, early: str
) -> None:
    change = {
        "edit": edit(message, "red paper"),
        "revoke": revoke(message),
        "reaction": react(message, "👍"),
    }[early]
    world.receive(change, message)
    world.work()
    now = stored(message)
    if early == "edit":
        assert (now.content, now.history[0]["content"]) == ("red paper", "wrap it in green paper")
    elif early == "revoke":
        assert (now.content, world.provider.sent) == ("", [])
        assert "green paper" not in whole_database()
    else:
        assert now.metadata["reactions"] == {CLIENT: "👍"}
    assert not InboundDelivery.objects.filter(change__isnull=False).exists()


def test_a_reaction_is_stored_and_never_answered(world: World, message: InboundMessage) -> None:
    world.receive(message)
    world.work()
    world.receive(react(message, "👍"))
    world.receive(react(message, "❤️"))
    assert stored(message).metadata["reactions"] == {CLIENT: "❤️"}
    world.receive(react(message, ""))
    world.work()
    assert stored(message).metadata["reactions"] == {}
    assert len(world.provider.sent) == 1


def test_what_the_owner_types_on_the_phone_is_stored_and_not_answered(world: World) -> None:
    world.with_rules(pause_after_reply=timedelta(0))
    world.say(CLIENT, "Is it ready?")
    assert world.say(CLIENT, "Yes, come at five", from_business=True) == []
    last = world.messages(CLIENT)[-1]
    assert (last.role, last.content) == ("assistant", "Yes, come at five")
    world.say(CLIENT, "When?")
    assert "Yes, come at five" in [line.content for line in world.prompt()]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("image", "picture"),
        ("video", "video"),
        ("voice", "recording"),
        ("audio", "recording"),
        ("document", "document"),
        ("sticker", "sticker"),
        ("unsupported", "can't read"),
    ],
)
def test_what_is_no_text_gets_a_fitting_answer(world: World, kind: str, words: str) -> None:
    (reply,) = world.say(CLIENT, "", kind=kind, media=Media(media_id="42", mime_type="x/y"))
    assert words in reply
    first = world.messages(CLIENT)[0]
    assert (first.kind, first.media) == (kind, {"media_id": "42", "mime_type": "x/y"})


def test_a_caption_goes_to_the_model_with_its_kind(world: World) -> None:
    world.say(CLIENT, "Is this the vase?", kind="image", media=Media(media_id="42"))
    assert world.prompt()[-1].content == "[image] Is this the vase?"


def test_a_long_revoked_text_is_gone_from_beside_what_was_recalled(world: World) -> None:
    secret = message_from(CLIENT, "the safe is behind the picture " + "and so on " * 40)
    world.with_chat_memory(limits=Limits(client=30))
    # The answers stand behind the message that they answer.
    world.receive(secret, message_from(CLIENT, "My locksmith is called Benny Example"))
    world.work()
    for place in range(4):
        world.say(CLIENT, f"Something else, number {place}, long enough to leave the window")
    world.say(CLIENT, "What is my locksmith called?")
    assert "behind the picture" in str(Turn.objects.latest("id").replay.recalled)
    world.receive(revoke(secret))
    turn = Turn.objects.latest("id")
    assert "behind the picture" not in str(turn.replay.recalled) + str(turn.replay.prompt)


MAKERS = [lambda message: edit(message, "it is free"), revoke, lambda message: react(message, "👎")]


@pytest.mark.parametrize("make", MAKERS)
def test_a_change_reaches_no_other_chat(world: World, message: InboundMessage, make: Any) -> None:
    """Whoever knows the id of somebody else's message can't get at it."""
    world.say(OTHER_CLIENT, "Hello")
    world.receive(message)
    world.work()
    world.receive(replace(make(message), party=Party(phone=OTHER_CLIENT.split("@")[0])))
    now = stored(message)
    assert now.content == message.text
    assert now.metadata == {}
    assert (
        InboundDelivery.objects.latest("id").outcome == "not done: its message is in another chat"
    )
    world.receive(replace(make(message), delivery_key="its own"))
    now = stored(message)
    assert (now.content, now.metadata) != (message.text, {})


@pytest.mark.parametrize("group", [None, "120363000000000009"])
@pytest.mark.parametrize("is_early", [True, False])
@pytest.mark.parametrize("make", MAKERS)
def test_a_stranger_changes_no_message(
    world: World, message: InboundMessage, make: Any, is_early: bool, group: str | None
) -> None:
    """A number, or a group, that has no chat has no message either."""
    stranger = Party(phone=OTHER_CLIENT.split("@")[0])
    foreign = replace(make(message), party=stranger, group_id=group)
    world.receive(*([foreign, message] if is_early else [message, foreign]))
    world.work()
    assert (stored(message).content, stored(message).metadata) == (message.text, {})
    assert [part.text for part in world.provider.sent] == [f"answer to: {message.text}"]
    world.receive(replace(make(message), delivery_key="its own"))
    assert (stored(message).content, stored(message).metadata) != (message.text, {})


def test_a_change_in_a_new_group_waits_for_its_message(
    world: World, message: InboundMessage
) -> None:
    group: dict[str, Any] = {"group_id": "120363000000000001"}
    in_group = replace(message, mentions_us=True, **group)
    world.receive(replace(revoke(in_group), **group), in_group)
    assert stored(in_group).revoked_at is not None


@pytest.mark.parametrize("is_known", [True, False])
def test_nor_a_message_without_memory(
    world: World, message: InboundMessage, is_known: bool
) -> None:
    if is_known:
        world.say(OTHER_CLIENT, "Hello")
    world.with_rules(memory_enabled=False)
    world.receive(message)
    world.receive(replace(revoke(message), party=Party(phone=OTHER_CLIENT.split("@")[0])))
    assert Turn.objects.latest("id").state == "pending"
    world.receive(replace(revoke(message), delivery_key="its own"))
    assert Turn.objects.latest("id").state == "cancelled"


def test_one_id_at_two_providers_is_two_messages(world: World, message: InboundMessage) -> None:
    other = replace(message, provider="green", number_id="7", text="wrap it in paper of Omer's")
    world.receive(message, other)
    world.receive(replace(revoke(message), provider="green", number_id="7"))
    left = Message.objects.get(provider="cloud", role="user")
    assert left.content == message.text
    assert Message.objects.get(provider="green", role="user").revoked_at is not None


def test_in_a_group_changes_come_from_the_group(world: World, message: InboundMessage) -> None:
    group: dict[str, Any] = {"group_id": "120363000000000001"}
    world.say(OTHER_CLIENT, "Hello")
    in_group = replace(message, mentions_us=True, **group)
    world.receive(in_group)
    someone = Party(phone=OTHER_CLIENT.split("@")[0])
    world.receive(replace(revoke(in_group), party=someone))
    assert stored(in_group).revoked_at is None
    # An admin of the group may.
    world.receive(replace(revoke(in_group), party=someone, delivery_key="in it", **group))
    assert stored(in_group).revoked_at is not None
