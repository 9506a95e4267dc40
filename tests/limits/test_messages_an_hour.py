"""So many messages of a client's chat are answered in an hour, and what happens to the others."""

from __future__ import annotations

import logging
import re
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from time import time
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.models import ChatAccess, ChatSession, InboundDelivery, Message, Turn, UsageDay
from sessions_app.turns.queue import chat_answer
from sessions_app.turns.turn_dependencies import Dependencies
from tests.limits.conftest import Limiting, calls, ends, sent
from tests.sessions.desk import Desk
from tests.threads import in_threads
from tests.webhooks.conftest import cloud_text, configured  # noqa: F401
from tests.webhooks.posting import post_cloud
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

HOUR = timedelta(hours=1)
POLITE = "You have sent many messages in a short time."


def write(world: World, texts: list[str], whatsapp_chat: str = CLIENT) -> None:
    world.receive(*(message_from(whatsapp_chat, text) for text in texts))


def an_hour_later(world: World) -> None:
    ChatAccess.objects.update(hour_began_at=timezone.now() - HOUR)


@pytest.mark.django_db(transaction=True)
def test_however_many_messages_120_of_one_number_lead_to_model_calls_out_of_the_box(
    configured: None,  # noqa: F811
    cloud_text: dict[str, Any],  # noqa: F811
    client: Client,
    dependencies: Dependencies,
    caplog: Any,
) -> None:
    """The first five of the hour and, as if many had come between them, those at the limit."""
    for number in range(12):
        if number == 5:
            assert ChatAccess.objects.filter(hour_messages=5).update(hour_messages=117) == 1
        assert post_cloud(client, payload(cloud_text, f"question {number}")).status_code == 200
    assert Message.objects.filter(role="user").count() == 12, "nothing is lost"
    limited = replace(dependencies, limits=build_usage_limits())
    with caplog.at_level(logging.WARNING):
        chat_answer(chat_id=Turn.objects.earliest("id").chat_id, dependencies=limited)
    model: Any = dependencies.chat_model
    provider: Any = dependencies.providers["cloud"]
    assert len(model.requests) == 5 + 3
    assert [part.text.startswith(POLITE) for part in provider.sent] == [False] * 8 + [True]
    assert ends() == [
        *[("sent", "")] * 8,
        ("sent", "limit_messages"),
        *[("refused", "limit_messages")] * 3,
    ]
    assert Turn.objects.filter(finished_at=None).count() == 0


def payload(recorded: dict[str, Any], text: str) -> dict[str, Any]:
    body = deepcopy(recorded)
    (message,) = body["entry"][0]["changes"][0]["value"]["messages"]
    message.update(id=f"wamid.{text}", timestamp=str(int(time())), text={"body": text})
    return body


def test_the_next_hour_is_answered_again_and_told_of_its_own_limit(limited: Limiting) -> None:
    world = limited(messages_per_hour=2)
    write(world, ["one", "two", "three", "four"])
    world.work()
    assert [text[:8] for text in sent(world)] == ["answer t", "answer t", "You have"]
    an_hour_later(world)
    assert world.say(CLIENT, "five") == ["answer to: five"]
    write(world, ["six", "seven", "eight"])
    world.work()
    assert [text[:8] for text in sent(world)[4:]] == ["answer t", "You have"]


def test_in_hebrew_the_chat_is_told_in_hebrew(limited: Limiting) -> None:
    world = limited(messages_per_hour=1)
    write(world, ["שלום, מתי אתם פתוחים?", "ומתי מחר?"])
    world.work()
    assert re.match("נשלחו כאן הרבה הודעות", sent(world)[-1])


def test_each_chat_has_its_own_count_and_the_owner_none(limited: Limiting) -> None:
    world = limited(messages_per_hour=1)
    for chat in (CLIENT, OTHER_CLIENT):
        write(world, ["one", "two"], chat)
    write(world, ["one", "two", "three"], GODFATHER)
    world.work()
    assert calls(world) == 5
    assert ChatAccess.objects.count() == 2


def test_the_messages_over_the_limit_are_part_of_the_conversation(limited: Limiting) -> None:
    world = limited(messages_per_hour=1)
    write(world, ["one", "two", "My room is number nine"])
    world.work()
    an_hour_later(world)
    world.say(CLIENT, "Which room?")
    assert "My room is number nine" in [line.content for line in world.prompt()]


def test_commands_work_beyond_the_limit_and_have_a_limit_of_their_own(limited: Limiting) -> None:
    world = limited(messages_per_hour=2)
    write(world, ["one", "two", "three"])
    world.work()
    (reply,) = world.say(CLIENT, "/help")
    assert "/forget" in reply
    for _ in range(3):
        assert world.say(CLIENT, "/memories")
    assert world.say(CLIENT, "/help") == []
    assert ends()[-1] == ("refused", "limit_commands")
    assert world.say(CLIENT, "/reset") == []


def test_a_reset_over_the_limit_ends_no_session(limited: Limiting) -> None:
    world = limited(messages_per_hour=1)
    write(world, ["/help", "/help"])
    before = ChatSession.objects.get()
    (told,) = world.say(CLIENT, "/reset")[-1:]
    assert told.startswith(POLITE)
    assert ChatSession.objects.get() == before


def test_a_flood_of_commands_is_told_once(limited: Limiting) -> None:
    world = limited(messages_per_hour=1)
    write(world, ["/help"] * 5)
    world.work()
    assert [text.startswith(POLITE) for text in sent(world)] == [False, False, True]


def test_what_isnt_answered_anyway_doesnt_count(limited: Limiting, desk: Desk) -> None:
    world = limited(messages_per_hour=1)
    old = timezone.now() - timedelta(hours=30)
    world.receive(message_from(CLIENT, "too old", timestamp=old))
    event = message_from(CLIENT, "once")
    world.receive(event, event)
    world.work()
    desk.pause()
    write(world, ["held"])
    desk.resume()
    assert ChatAccess.objects.get().hour_messages == 1
    assert [state for state, _reason in ends()] == ["missed", "sent", "held"]


def test_with_memory_off_the_limit_holds_and_nothing_is_kept(limited: Limiting) -> None:
    world = limited(messages_per_hour=1)
    world.with_rules(memory_enabled=False)
    write(world, ["one", "two", "three"])
    world.work()
    assert [text[:8] for text in sent(world)] == ["answer t", "You have"]
    assert ends() == [("sent", ""), ("sent", "limit_messages"), ("refused", "limit_messages")]
    assert not Turn.objects.exclude(unstored_text="").exists()
    assert not InboundDelivery.objects.filter(raw__isnull=False).exists()


def test_callers_of_the_api_are_not_limited_by_the_hour(limited: Limiting) -> None:
    world = limited(messages_per_hour=1)
    for text in ("one", "two"):
        assert world.talk(text).reply == f"answer to: {text}"
    assert UsageDay.objects.get().model_calls == 2


def test_no_limit_is_set_by_0(limited: Limiting) -> None:
    world = limited(messages_per_hour=0)
    write(world, [f"message {number}" for number in range(5)])
    world.work()
    assert calls(world) == 5


def test_a_burst_is_not_answered_with_the_notice(limited: Limiting) -> None:
    """With TURN_DEBOUNCE_SECONDS the messages before the notice get an answer of their own."""
    world = limited(messages_per_hour=2)
    write(world, ["one", "two", "three"])
    world.with_answer_rules(burst_gap=timedelta(seconds=5))
    chat_answer(chat_id=world.chat(CLIENT).pk, dependencies=world.dependencies)
    assert [text[:14] for text in sent(world)] == ["answer to: two", "You have sent "]


@pytest.mark.django_db(transaction=True)
def test_messages_at_once_never_pass_the_limit_together(limited: Limiting) -> None:
    world = limited(messages_per_hour=3)
    events = [message_from(CLIENT, f"message {number}") for number in range(8)]
    # Every event is delivered twice, and both at once.
    doubled = [*events, *events]
    in_threads(lambda: world.receive(doubled.pop()), 16)
    in_threads(world.work, 3)
    world.work()
    assert calls(world) == 3
    states = sorted(ends())
    assert states == [
        *[("refused", "limit_messages")] * 4,
        *[("sent", "")] * 3,
        ("sent", "limit_messages"),
    ]


def test_staff_are_warned_once_an_hour(limited: Limiting, caplog: Any) -> None:
    world = limited(messages_per_hour=1)
    with caplog.at_level(logging.WARNING, "sessions_app.limits"):
        write(world, ["one", "two", "three"])
    (record,) = caplog.records
    assert record.getMessage() == f"Chat {world.chat(CLIENT).pk} reached a limit: limit_messages."
    assert UsageDay.objects.get().reached == "limit_messages"
