"""Staff answer a chat themselves: once, inside the window, as history like any other."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.whatsapp.base import SendError
from memoryproject.foundation.integrations.whatsapp.events import Party, StatusUpdate
from sessions_app.conversations.chat_queries import last_heard, window_closes
from sessions_app.forgetting.execute import ForgetDependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.models import ChatPause, InboundDelivery, Message, OutboundPart, Turn
from sessions_app.takeover.attachment import (
    EmptyReplyError,
    KeyUsedError,
    TooLongError,
    WindowClosedError,
)
from sessions_app.takeover.staff_reply import MAX_LENGTH, OwnNumber
from sessions_app.turns.turn_claims import turn_claim, turns_sweep
from tests.sessions.desk import DAY, Desk
from tests.threads import in_threads
from tests.world import CLIENT, NUMBER_ID, OTHER_CLIENT, World, message_from

GROUP = "120363000000000001"


def sent(world: World) -> list[str]:
    return [part.text for part in world.provider.sent]


def test_a_reply_is_sent_and_is_history_like_any_other(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    world.say(CLIENT, "Do you have a room?")
    desk.write("Yes, *two* of them")
    world.work()
    assert sent(world)[-1] == "Yes, *two* of them"
    reply = world.messages(CLIENT)[-1]
    assert (reply.role, reply.content, reply.order_num) == ("assistant", "Yes, *two* of them", 4)
    assert reply.metadata == {"by_hand": True, "author_id": desk.user.pk}
    assert (reply.delivery_status, reply.provider_message_id) == (
        "sent",
        world.provider.sent[-1].provider_message_id,
    )
    desk.resume()
    world.say(CLIENT, "Which?")
    roles = [(line.role, line.content) for line in world.prompt()[1:]]
    assert roles[-3:] == [
        ("user", "Do you have a room?"),
        ("assistant", "Yes, *two* of them"),
        ("user", "Which?"),
    ]


def test_it_is_told_to_the_audit_log_without_its_words(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    turn = desk.write("A secret").turn
    event = AuditEvent.objects.get(action="takeover.reply")
    assert (event.actor, event.object_type, event.object_id) == ("dana", "turn", str(turn.turn_id))
    assert event.chat
    assert "secret" not in str(vars(event))


def test_the_same_form_twice_sends_once(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    key = uuid.uuid4()
    assert desk.write("Hello", key=key).fresh
    again = desk.write("Hello", key=key)
    world.work()
    assert not again.fresh
    assert not desk.write("Hello", key=key).fresh
    world.work()
    assert sent(world)[1:] == ["Hello"]
    assert AuditEvent.objects.filter(action="takeover.reply").count() == 1


def test_another_text_with_a_used_key_is_refused(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    world.say(OTHER_CLIENT, "Hi")
    key = uuid.uuid4()
    desk.write("Hello", key=key)
    with pytest.raises(KeyUsedError):
        desk.write("Something else", key=key)
    with pytest.raises(KeyUsedError):
        desk.write("Hello", OTHER_CLIENT, key=key)
    answered = Turn.objects.filter(by_hand=False, chat=world.chat(CLIENT)).get()
    with pytest.raises(KeyUsedError):
        desk.write("Hi", key=answered.turn_id)


@pytest.mark.django_db(transaction=True)
def test_a_double_click_sends_once(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    key = uuid.uuid4()
    results: list[Any] = in_threads(lambda: desk.write("Hello", key=key), 8)
    assert sorted(result.fresh for result in results) == [False] * 7 + [True]
    world.work()
    assert sent(world)[1:] == ["Hello"]
    assert Message.objects.filter(content="Hello").count() == 1


def test_who_writes_in_between_takes_over_for_an_hour(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    now = timezone.now()
    assert desk.write("Let me help", now=now).paused_until == now + timedelta(hours=1)
    assert ChatPause.objects.get().paused_by == desk.user
    world.work()
    assert world.say(CLIENT, "Thanks") == []
    assert desk.write("You're welcome").paused_until is None


def test_a_chat_that_came_by_the_api_is_written_to_by_the_provider_for_such(
    world: World, desk: Desk
) -> None:
    world.say(CLIENT, "Hi", provider="console", number_id="")
    before = len(world.provider.sent)
    desk.otherwise = OwnNumber("cloud", NUMBER_ID)
    turn = desk.write("Hello from us").turn
    world.work()
    (out,) = world.provider.sent[before:]
    assert (out.text, out.to.phone) == ("Hello from us", CLIENT.split("@")[0])
    assert (turn.provider, turn.number_id) == ("cloud", NUMBER_ID)
    reply = world.messages(CLIENT)[-1]
    assert (reply.provider, reply.number_id, reply.delivery_status) == ("cloud", NUMBER_ID, "sent")


def test_without_one_a_reply_there_stands_in_the_conversation_alone(
    world: World, desk: Desk
) -> None:
    world.say(CLIENT, "Hi", provider="console", number_id="")
    before = len(world.provider.sent)
    desk.write("Hello from us")
    world.work()
    assert world.provider.sent[before:] == []
    assert world.messages(CLIENT)[-1].content == "Hello from us"
    assert Turn.objects.get(by_hand=True).state == "sent"


def test_a_chat_that_came_by_a_provider_stays_with_it(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.otherwise = OwnNumber("green", "1101000001")
    assert desk.write("Hello").turn.provider == "cloud"


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_reply_is_refused(world: World, desk: Desk, text: str) -> None:
    world.say(CLIENT, "Hi")
    with pytest.raises(EmptyReplyError):
        desk.write(text)
    assert not ChatPause.objects.exists()


def test_a_reply_of_any_length_is_refused_above_the_limit(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    with pytest.raises(TooLongError):
        desk.write("x" * (MAX_LENGTH + 1))
    assert Turn.objects.filter(by_hand=True).count() == 0


def test_outside_the_window_nothing_is_stored_and_nothing_is_paused(
    world: World, desk: Desk
) -> None:
    world.say(CLIENT, "Hi")
    now = timezone.now()
    with pytest.raises(WindowClosedError):
        desk.write("Hello", now=now + timedelta(hours=25))
    assert not Turn.objects.filter(by_hand=True).exists()
    assert not ChatPause.objects.exists()
    assert desk.write("Hello", now=now + timedelta(hours=23)).fresh


def test_the_window_goes_by_what_the_person_wrote_last_not_by_our_own_words(
    world: World, desk: Desk
) -> None:
    earlier = timezone.now() - timedelta(hours=5)
    world.say(CLIENT, "Hi", timestamp=earlier)
    desk.write("Hello")
    world.work()
    chat = world.chat(CLIENT)
    assert last_heard(chat) == earlier
    assert window_closes(chat, DAY) == earlier + DAY
    now = timezone.now()
    world.say(CLIENT, "One more thing", timestamp=now)
    assert last_heard(chat) == now


def test_the_window_is_told_from_the_newest_of_a_long_conversation(
    world: World, desk: Desk
) -> None:
    earlier = timezone.now() - timedelta(hours=5)
    world.say(CLIENT, "Hi", timestamp=earlier)
    chat = world.chat(CLIENT)
    # From another number of ours on the chat is answered; nobody wrote to it yet.
    Message.objects.filter(chat=chat).update(number_id="222")
    chat.turns.update(number_id="222")
    assert last_heard(chat) is None
    first = chat.messages.get(role="user")
    Message.objects.filter(pk=first.pk).update(number_id=chat.number_id)
    assert last_heard(chat) == earlier
    assert last_heard(chat, looked_at=1) is None


def test_without_memory_the_window_goes_by_the_turns(world: World, desk: Desk) -> None:
    world.with_rules(memory_enabled=False)
    earlier = timezone.now() - timedelta(hours=5)
    world.say(CLIENT, "Hi", timestamp=earlier)
    desk.write("Hello")
    world.work()
    assert last_heard(world.chat(CLIENT)) == earlier


def test_in_a_group_whoever_wrote_opens_the_window(world: World, desk: Desk) -> None:
    now = timezone.now()
    world.say(CLIENT, "not to the assistant", group_id=GROUP, timestamp=now)
    group = f"{GROUP}@g.us"
    assert last_heard(world.chat(group)) == now
    desk.write("Hello everybody", group)
    world.work()
    assert world.provider.sent[-1].to.group_id == GROUP
    assert world.provider.sent[-1].reply_to is None


def test_a_long_reply_goes_out_in_parts_in_order(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    long = "\n\n".join(f"Paragraph {place}. " + "word " * 300 for place in range(5))
    desk.write(long)
    world.work()
    parts = sent(world)[1:]
    assert len(parts) > 1
    assert "".join("".join(parts).split()) == "".join(long.split())
    assert world.messages(CLIENT)[-1].content == long


def test_it_goes_out_behind_the_answer_that_is_being_sent(world: World, desk: Desk) -> None:
    world.provider.fail_next(*[SendError("no route")] * 4)
    world.say(CLIENT, "Hi")
    desk.write("And from me")
    assert sent(world) == []
    Turn.objects.update(not_before=None)
    world.work()
    assert sent(world) == ["answer to: Hi", "And from me"]


def test_a_failure_is_told_and_staff_send_it_again(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    turn = desk.write("Hello").turn
    world.provider.fail_next(SendError("window closed", permanent=True))
    world.work()
    turn.refresh_from_db()
    assert (turn.state, turn.error) == ("failed", "window closed")
    assert world.messages(CLIENT)[-1].delivery_status == "failed"
    assert desk.rerun(turn) == "send"
    world.work()
    assert sent(world)[1:] == ["Hello"]


def test_one_that_may_have_gone_out_is_never_repeated_by_itself(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    turn = desk.write("Hello").turn
    world.provider.fail_next(SendError("timed out", outcome_unknown=True), carried_out=True)
    world.work()
    later = timezone.now() + timedelta(minutes=16)
    minutes = timedelta(minutes=15)
    turns_sweep(enqueue=world.enqueued.append, unconfirmed_after=minutes, now=later)
    world.work()
    turn.refresh_from_db()
    assert turn.state == "unconfirmed"
    assert sent(world)[1:] == ["Hello"]


def test_its_statuses_are_told(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.write("Hello")
    world.work()
    world.receive(
        StatusUpdate(
            provider="cloud",
            number_id=NUMBER_ID,
            delivery_key="status",
            provider_message_id=world.provider.sent[-1].provider_message_id,
            status="read",
            timestamp=timezone.now(),
        )
    )
    reply = world.messages(CLIENT)[-1]
    assert (reply.delivery_status, reply.was_received) == ("read", True)


def test_stored_but_never_enqueued_it_is_taken_up_by_the_sweep(world: World, desk: Desk) -> None:
    """As after kill -9 between the commit and the queue."""
    world.say(CLIENT, "Hi")
    desk.write("Hello")
    world.enqueued.clear()
    found = turns_sweep(enqueue=world.enqueued.append, unconfirmed_after=timedelta(minutes=15))
    assert found["enqueued"] == 1
    assert world.enqueued == [world.chat(CLIENT).pk]


def test_where_memory_is_off_it_is_kept_until_it_is_sent(world: World, desk: Desk) -> None:
    world.with_rules(memory_enabled=False)
    world.say(CLIENT, "Hi")
    unrelated = InboundDelivery.objects.create(
        provider="cloud", delivery_key="notice", event="Notice", raw={"kept": "yes"}
    )
    turn = desk.write("Hello").turn
    assert turn.unstored_reply == "Hello"
    world.work()
    assert sent(world)[1:] == ["Hello"]
    turn.refresh_from_db()
    assert (turn.state, turn.unstored_reply) == ("sent", "")
    assert Message.objects.count() == 0
    assert set(OutboundPart.objects.values_list("content", flat=True)) == {""}
    unrelated.refresh_from_db()
    assert unrelated.raw == {"kept": "yes"}


def test_one_person_by_two_providers_is_answered_by_the_last_one(world: World, desk: Desk) -> None:
    world.say(CLIENT, "by the Cloud API")
    event = message_from(CLIENT, "by Green", provider="green", number_id="1101")
    world.receive(event)
    world.work()
    desk.write("Hello")
    world.work()
    green = world.dependencies.providers["green"]
    assert [part.text for part in green.sent][-1] == "Hello"  # type: ignore[attr-defined]


def test_after_a_merge_it_still_goes_out_once(world: World, desk: Desk) -> None:
    bsuid = "US.10000000000000000001"
    world.say(CLIENT, "by id", party=Party(bsuid=bsuid))
    world.say(CLIENT, "by phone")
    desk.write("Hello")
    world.receive(message_from(CLIENT, "both", party=Party(phone=CLIENT[:-5], bsuid=bsuid)))
    world.work()
    assert sent(world).count("Hello") == 1


def test_a_reply_can_be_forgotten(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.write("The code is 4711")
    world.work()
    reply = world.messages(CLIENT)[-1]
    dependencies = ForgetDependencies(
        embedder=world.dependencies.embedder, chat_memory=world.rules.chat_memory
    )
    receipt = object_forget(kind="message", object_id=reply.pk, dependencies=dependencies)
    assert receipt.probe == "absent"
    assert Turn.objects.get(by_hand=True).reply is None


def test_two_workers_never_send_it_twice(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.write("Hello")
    chat_id = world.chat(CLIENT).pk
    assert turn_claim(chat_id=chat_id) is not None
    assert turn_claim(chat_id=chat_id) is None
