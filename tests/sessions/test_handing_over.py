"""A client who needs a person gets one: on request, after denials, at a limit, or by the model."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.llm.base import ChatRequest, Completion, ToolCall
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery
from memoryproject.staff_site.alerts import current_conditions
from sessions_app.conversations.chat_queries import handovers_open
from sessions_app.inbox.needs import conversations_count
from sessions_app.models import AssistantProfile, Chat, ChatPause, Turn
from sessions_app.turns.turn_claims import pauses_end
from tests.hooks.receiver import endpoint_at
from tests.sessions.desk import Desk
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World

TOLD = "I'm handing this over to a person, who will answer you here."


def states() -> list[str]:
    return list(Turn.objects.order_by("id").values_list("state", flat=True))


def test_who_asks_for_a_person_gets_one(world: World) -> None:
    world.say(CLIENT, "Do you bake for weddings?")
    assert world.say(CLIENT, "I want to talk to a real person please") == [TOLD]
    pause = ChatPause.objects.get()
    assert pause.cause == "person"
    assert world.say(CLIENT, "Hello?") == []
    assert conversations_count() == 1
    assert "handover" in [each.key.partition(":")[0] for each in current_conditions(timezone.now())]
    # Another chat goes on.
    assert world.say(OTHER_CLIENT, "Hi") == ["answer to: Hi"]


@pytest.mark.parametrize(
    "text",
    [
        *("אני רוצה לדבר עם נציג", "Quiero hablar con una persona", "Quero falar com um atendente"),
        *("Je veux parler à un humain", "Ich möchte mit einem Menschen sprechen"),
        *("Voglio parlare con un operatore", "Хочу поговорить с человеком"),
        *("أريد التحدث مع شخص حقيقي", "Bir insanla konuşmak istiyorum"),
        *("मुझे किसी इंसान से बात करनी है", "Saya mau bicara dengan orang", "Хочу поговорити з людиною"),
    ],
)
def test_in_other_languages(world: World, text: str) -> None:
    (told,) = world.say(CLIENT, text)
    assert told != TOLD
    assert Turn.objects.get().context["handover"] == "asked"


@pytest.mark.parametrize(
    "text", ["Are you human?", "Are you a bot?", "I met a nice person today", "Agent Smith, two?"]
)
def test_what_is_no_such_wish(world: World, text: str) -> None:
    assert world.say(CLIENT, text) == [f"answer to: {text}"]
    assert not ChatPause.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [{"metadata": {"frequently_forwarded": True}}, {"kind": "contacts"}, {"kind": "location"}],
)
def test_what_others_wrote_is_no_wish(world: World, changes: dict[str, Any]) -> None:
    world.say(CLIENT, "Customer service", **changes)
    assert not ChatPause.objects.exists()


def test_the_opening_hours_are_told(world: World) -> None:
    AssistantProfile.objects.update_or_create(pk=1, defaults={"opening_hours": "Sun-Thu 9-18"})
    (told,) = world.say(CLIENT, "human please")
    assert told == f"{TOLD}\nWe answer at these hours: Sun-Thu 9-18"


def test_three_denials(world: World) -> None:
    world.say(CLIENT, "How much is the rye?")
    assert world.say(CLIENT, "No, that's not it") == ["answer to: No, that's not it"]
    world.say(CLIENT, "What does the rye bread cost?")
    (offered,) = world.say(CLIENT, "That's not what I asked")
    assert offered.endswith("Would you like a person to answer you?\n\n1. Yes\n2. No")
    assert world.say(CLIENT, "The dark one, with seeds")[0].startswith("answer to:")
    (told,) = world.say(CLIENT, "no, that's wrong")
    assert told.startswith("I don't seem to find what you need.")
    assert Turn.objects.latest("id").context["handover"] == "failed"
    # Afterwards they are counted anew.
    ChatPause.objects.all().delete()
    assert world.say(CLIENT, "no, that's wrong")[0].startswith("answer to:")


@pytest.mark.parametrize(
    ("choice", "is_wanted"),
    [("Yes", True), ("1", True), ("Yes, please!", True)]
    + [("no", False), ("2", False), ("no thanks", False)],
)
def test_a_person_is_offered_before(world: World, choice: str, is_wanted: bool) -> None:
    world.say(CLIENT, "No, that's not it")
    world.say(CLIENT, "That's not what I asked")
    (told,) = world.say(CLIENT, choice)
    assert told == (TOLD if is_wanted else "All right. How can I help?")
    assert ChatPause.objects.exists() == is_wanted


def test_the_owner_and_groups_talk_to_people_anyway(world: World) -> None:
    text = "I want to talk to a person"
    assert world.say(GODFATHER, text) == [f"answer to: {text}"]
    group = {"group_id": "120363000000000001@g.us", "mentions_us": True}
    assert TOLD not in world.say(CLIENT, text, **group)


def test_a_limit_of_the_day(world: World) -> None:
    world.use(limits=replace(world.dependencies.limits, model_calls_per_day=1))
    world.say(CLIENT, "Hi")
    (told,) = world.say(CLIENT, "And rye?")
    assert told.startswith("I can't answer any more today.")
    assert told.endswith("\n\nA person has been told and will answer you here.")
    assert Turn.objects.latest("id").outcome == "refused"
    assert conversations_count() == 1
    assert world.say(CLIENT, "Hello?") == []
    assert len(world.say(CLIENT, "/help")) == 1
    assert states() == ["sent", "sent", "refused", "sent"]


def hands_over(request: ChatRequest, arguments: str = '{"reason": "wants a refund"}') -> Completion:
    """A model that calls the function, whether it is offered or not."""
    if request.messages[-1].role == "tool":
        return Completion("I have called Rosa.", model="m")
    return Completion("", model="m", tool_calls=[ToolCall("c1", "hand_over", arguments)])


def test_the_model_calls_for_a_person(world: World) -> None:
    world.use(chat_model=ScriptedChatModel(hands_over))
    assert world.say(CLIENT, "I want my money back!!") == [
        "I have called Rosa.\n\nA person has been told and will answer you here."
    ]
    assert ChatPause.objects.get().cause == "person"
    assert "wants a refund" in str(Turn.objects.get().replay.prompt)


@pytest.mark.parametrize("arguments", ["", "{}", "null", "{bad", '{"why": 5}', '{"reason": null}'])
def test_the_reason_may_be_missing(world: World, arguments: str) -> None:
    model = ScriptedChatModel(partial(hands_over, arguments=arguments))
    world.use(chat_model=model)
    world.say(CLIENT, "I want my money back!!")
    assert ChatPause.objects.get().cause == "person"


def test_the_owners_model_has_nobody_to_hand_over_to(world: World) -> None:
    world.use(chat_model=ScriptedChatModel(hands_over))
    assert world.say(GODFATHER, "Refund it") == ["I have called Rosa."]
    assert not ChatPause.objects.exists()


def conversation(client: Client, user: User) -> str:
    """The page of the client's conversation."""
    client.force_login(user)
    chat = Chat.objects.get(whatsapp_chat=CLIENT)
    return client.get(f"/admin/sessions_app/chat/{chat.pk}/conversation/").content.decode()


def test_a_person_who_answers_has_the_chat_for_an_hour(
    world: World, desk: Desk, client: Client, admin_user: User
) -> None:
    world.say(CLIENT, "a human please")
    now = timezone.now()
    assert desk.write("Here I am", now=now).paused_until == now + timedelta(hours=1)
    assert ChatPause.objects.get().cause == "reply"
    assert not [each for each in current_conditions(now) if each.key.startswith("handover")]
    assert 'id="handover"' not in conversation(client, admin_user)


def test_where_nobody_comes_the_assistant_goes_on(world: World) -> None:
    world.say(CLIENT, "a human please")
    assert world.say(CLIENT, "It is about my order") == []
    later = timezone.now() + timedelta(hours=12, minutes=1)
    assert pauses_end(now=later, enqueue=lambda _: None, max_age=timedelta(days=1)) == 1
    world.work()
    assert world.provider.sent[-1].text == "answer to: It is about my order"
    # The chat still needs a person.
    assert conversations_count() == 1


def test_the_owner_who_answers_by_phone_ends_the_waiting(world: World) -> None:
    world.say(CLIENT, "a human please")
    assert conversations_count() == 1
    world.say(CLIENT, "Rosa here", from_business=True)
    assert ChatPause.objects.get().cause == "owner"
    assert not list(handovers_open())


def test_integrators_and_the_audit_log_are_told(world: World) -> None:
    endpoint_at("https://1.1.1.1/hook")
    world.say(CLIENT, "a human please")
    (event,) = WebhookDelivery.objects.filter(event_type="handover.requested")
    assert event.data["reason"] == "asked"
    assert "human" not in str(event.data)
    assert AuditEvent.objects.get(action="takeover.pause").details["cause"] == "person"


def test_staff_find_what_they_need_to_know(world: World, client: Client, admin_user: User) -> None:
    world.remember(CLIENT, "My daughter is allergic to nuts")
    world.remember(GODFATHER, "Wedding cakes cost us 40 to make")
    world.say(CLIENT, "Do you make wedding cakes?")
    world.say(CLIENT, "I want to talk to a person")
    page = conversation(client, admin_user)
    packet = page.partition('id="handover"')[2].partition("</section>")[0]
    for words in (
        *("Test User", "+1 555-010-0123", "I want to talk to a person"),
        *("Do you make wedding cakes?", "answer to: Do you make wedding cakes?"),
        *("My daughter is allergic to nuts", "Wedding cakes cost us 40 to make"),
    ):
        assert words in packet, words
