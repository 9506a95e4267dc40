"""Staff answer a chat themselves: once, inside the window, as history like any other."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.whatsapp.base import SendError, SendResult
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.conversations.chat_queries import last_heard, window_closes
from sessions_app.models import ChatPause, InboundDelivery, Message, OutboundPart, Turn
from sessions_app.takeover.attachment import ReplyRefusedError
from sessions_app.takeover.staff_reply import OwnNumber
from sessions_app.turns.turn_claims import TurnLease, turn_claim
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
    with pytest.raises(ReplyRefusedError, match="another reply already"):
        desk.write("Something else", key=key)
    with pytest.raises(ReplyRefusedError, match="another reply already"):
        desk.write("Hello", OTHER_CLIENT, key=key)
    answered = Turn.objects.filter(by_hand=False, chat=world.chat(CLIENT)).get()
    with pytest.raises(ReplyRefusedError, match="another reply already"):
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
    again = now + timedelta(minutes=40)
    assert desk.write("You're welcome", now=again).paused_until == again + timedelta(hours=1)


def test_a_chat_of_the_api_is_written_to_by_our_provider(world: World, desk: Desk) -> None:
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


def test_without_one_a_reply_is_only_stored(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi", provider="console", number_id="")
    before = len(world.provider.sent)
    desk.write("Hello from us")
    world.work()
    assert world.provider.sent[before:] == []
    assert world.messages(CLIENT)[-1].content == "Hello from us"
    assert Turn.objects.get(by_hand=True).state == "sent"


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_reply_is_refused(world: World, desk: Desk, text: str) -> None:
    world.say(CLIENT, "Hi")
    with pytest.raises(ReplyRefusedError, match="empty"):
        desk.write(text)
    assert not ChatPause.objects.exists()


def test_outside_the_window_nothing_is_stored_or_paused(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    now = timezone.now()
    with pytest.raises(ReplyRefusedError, match="window is closed"):
        desk.write("Hello", now=now + timedelta(hours=25))
    assert not Turn.objects.filter(by_hand=True).exists()
    assert not ChatPause.objects.exists()
    assert desk.write("Hello", now=now + timedelta(hours=23)).fresh


def test_the_window_goes_by_what_the_person_wrote_last(world: World, desk: Desk) -> None:
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


def test_in_a_group_whoever_wrote_opens_the_window(world: World, desk: Desk) -> None:
    now = timezone.now()
    world.say(CLIENT, "not to the assistant", group_id=GROUP, timestamp=now)
    group = f"{GROUP}@g.us"
    assert last_heard(world.chat(group)) == now
    desk.write("Hello everybody", group)
    world.work()
    assert world.provider.sent[-1].to.group_id == GROUP
    assert world.provider.sent[-1].reply_to is None


def test_it_goes_out_instead_of_an_answer_that_is_not_sent_yet(world: World, desk: Desk) -> None:
    world.provider.fail_next(*[SendError("no route")] * 4)
    world.say(CLIENT, "Hi")
    desk.write("And from me")
    assert sent(world) == []
    Turn.objects.update(not_before=None)
    world.work()
    assert sent(world) == ["And from me"]


def test_nor_does_another_worker_send_it_meanwhile(
    world: World, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_text = world.provider.send_text
    claimed: list[TurnLease | None] = []

    def send(**message: Any) -> SendResult:
        if not claimed:
            desk.write("And from me")
            claimed.append(turn_claim(chat_id=world.chat(CLIENT).pk))
        return send_text(**message)

    monkeypatch.setattr(world.provider, "send_text", send)
    world.say(CLIENT, "Hi")
    world.work()
    assert claimed == [None]
    assert sent(world) == ["answer to: Hi", "And from me"]


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
