"""What was derived from a text loses it in linear time; what is long, by a worker."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from hypothesis import given, strategies as st

from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.events import InboundMessage
from sessions_app.conversations import redact_derived
from sessions_app.conversations.redact_derived import GONE, REDACT, WORK_LENGTH, chat_redact
from sessions_app.inbound.message_changes import MAX_HISTORY_LENGTH, MAX_VERSIONS
from sessions_app.limits.intake import CHANGES_PER_HOUR, UsageLimits
from sessions_app.models import ChatAccess, InboundDelivery, Message, TurnReplay
from sessions_app.models.chats import Limits
from sessions_app.sweeps import leased_kinds
from tests.sessions.test_changes import edit, react, revoke, stored, whole_database
from tests.world import CLIENT, GODFATHER, World, message_from

DOTS = "." * 60_000 + "c<i>"


@given(content=st.text("ab .([é_", max_size=40), text=st.text("ab .([é_", min_size=1, max_size=4))
def test_a_text_is_replaced_where_it_stands_by_itself(content: str, text: str) -> None:
    as_written = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
    found = redact_derived._without(content, text)
    assert found in (as_written.sub(lambda _: GONE, content), GONE)


def test_what_stands_in_place_of_a_text_is_not_searched_again() -> None:
    redactor = redact_derived._Redactor(["the sender", "by", "the", "sender", "deleted", "["])
    once = redactor.without_whole("by the sender")
    assert once == f"{GONE} {GONE}"
    assert redactor.without_whole(once) == once


def quiet(world: World) -> None:
    world.use(chat_model=ScriptedChatModel(lambda _: "Fine"))


def left_to_do() -> list[Any]:
    (redactions,) = [kind for kind in leased_kinds() if kind.name == "redactions"]
    return list(redactions.abandoned(timezone.now()))


@pytest.fixture
def crowded(world: World) -> InboundMessage:
    """A message that its chat's long replays hold many times."""
    quiet(world)
    world.with_chat_memory(limits=Limits(client=10**6, godfather=10**6))
    first = message_from(CLIENT, f"the safe opens with 1809 {DOTS}")
    world.receive(first, *(edit(first, f"the safe opens with 18{n} {DOTS}") for n in (1, 12)))
    world.work()
    for number in range(8):
        world.say(CLIENT, f"{number} {DOTS}")
    return first


@pytest.mark.django_db
def test_long_replays_are_left_to_a_worker(world: World, crowded: InboundMessage) -> None:
    handed_on: list[UUID] = []
    world.with_rules(redact=handed_on.append)
    world.receive(revoke(crowded))
    assert handed_on == [world.chat(CLIENT).pk] == left_to_do()
    revoked = stored(crowded)
    assert (revoked.content, revoked.history, revoked.terms) == ("", [], [])
    assert "the safe opens" not in str(list(Message.objects.values_list("content", "history")))
    assert "the safe opens" in whole_database()

    assert chat_redact(chat_id=handed_on[0]) == 1
    assert "the safe opens" not in whole_database()
    assert left_to_do() == []
    assert GONE in str(list(TurnReplay.objects.values_list("prompt")))
    assert DOTS in str(list(TurnReplay.objects.values_list("prompt"))), "what others said stays"


@pytest.mark.django_db
def test_what_a_killed_worker_left_is_done(world: World, crowded: InboundMessage) -> None:
    world.receive(revoke(crowded))
    InboundDelivery.objects.filter(change__has_key=REDACT).update(
        retry_at=timezone.now() + WORK_LENGTH
    )
    assert left_to_do() == []
    assert chat_redact(chat_id=world.chat(CLIENT).pk) == 0, "one is at it"
    InboundDelivery.objects.filter(change__has_key=REDACT).update(retry_at=timezone.now())
    for chat_id in left_to_do():
        chat_redact(chat_id=chat_id)
    assert "the safe opens" not in whole_database()


@pytest.mark.django_db
def test_a_second_revocation_ends_no_redaction(world: World, crowded: InboundMessage) -> None:
    world.receive(revoke(crowded), replace(revoke(crowded), delivery_key="revoke-again"))
    chat_redact(chat_id=world.chat(CLIENT).pk)
    assert "the safe opens" not in whole_database()


@pytest.mark.django_db
def test_a_message_keeps_its_first_text_and_the_newest_ones(world: World) -> None:
    quiet(world)
    first = message_from(CLIENT, "version 0 of it")
    world.receive(first)
    world.work()
    for number in range(1, 31):
        world.receive(edit(first, f"version {number} of it" + "!" * number))
        if number == 4:
            world.say(CLIENT, "And?")
    message = stored(first)
    kept = [entry["content"].rstrip("!") for entry in message.history]
    assert kept[0] == "version 0 of it"
    assert kept[1:] == [f"version {number} of it" for number in range(21, 30)]
    assert len(kept) == MAX_VERSIONS
    assert [entry.get("left_out") for entry in message.history[:3]] == [None, 20, None]
    # A revocation could not find it there any more.
    assert "version 4 of it" not in str(list(TurnReplay.objects.values_list("prompt")))
    world.receive(revoke(first))
    assert "of it" not in whole_database()


@pytest.mark.django_db
def test_the_history_of_a_message_has_a_length(world: World) -> None:
    world.with_rules(limits=UsageLimits())
    first = message_from(CLIENT, DOTS)
    world.receive(first, *(edit(first, DOTS + "!" * number) for number in range(1, 20)))
    history = stored(first).history
    assert sum(len(entry["content"]) for entry in history) <= MAX_HISTORY_LENGTH
    assert history[0]["content"] == DOTS
    assert sum(entry.get("left_out", 1) for entry in history[1:]) >= 17


@pytest.mark.django_db
@pytest.mark.parametrize("limits", [UsageLimits(messages_per_hour=10), UsageLimits()])
def test_over_the_limit_only_a_revocation_is_obeyed(world: World, limits: UsageLimits) -> None:
    world.with_rules(limits=limits)
    most = limits.messages_per_hour or CHANGES_PER_HOUR
    message = message_from(CLIENT, "wrap it in green paper")
    world.receive(message)
    ChatAccess.objects.update_or_create(
        chat=world.chat(CLIENT),
        defaults={"hour_began_at": timezone.now(), "hour_messages": most - 1},
    )
    world.receive(edit(message, "red paper"), edit(message, "purple paper"), react(message, "👍"))
    assert stored(message).content == "red paper"
    assert stored(message).metadata == {}
    assert "purple" not in whole_database()
    refused = InboundDelivery.objects.filter(outcome__startswith="not done")
    assert sorted(refused.values_list("event", flat=True)) == ["MessageEdited", "Reaction"]
    world.receive(revoke(message))
    assert stored(message).content == ""
    assert "red paper" not in whole_database()


@pytest.mark.django_db
def test_changes_of_a_client_count_as_messages_and_those_of_the_owner_not(world: World) -> None:
    world.with_rules(limits=UsageLimits(messages_per_hour=3))
    message = message_from(CLIENT, "wrap it in green paper")
    world.receive(message, edit(message, "red paper"), react(message, "👍"))
    assert world.say(CLIENT, "one more")[-1].startswith("You have sent many messages")
    ours = message_from(GODFATHER, "paper 0")
    world.receive(
        ours, *(replace(edit(ours, "paper " + "1" * n), party=ours.party) for n in range(1, 9))
    )
    assert stored(ours).content == "paper 11111111"


@pytest.mark.django_db
def test_an_hour_later_changes_are_applied_again(world: World) -> None:
    world.with_rules(limits=UsageLimits(messages_per_hour=1))
    message = message_from(CLIENT, "wrap it in green paper")
    world.receive(message, edit(message, "red paper"))
    assert stored(message).content == "wrap it in green paper"
    ChatAccess.objects.update(hour_began_at=timezone.now() - timedelta(hours=1))
    world.receive(edit(message, "blue paper"))
    assert stored(message).content == "blue paper"
