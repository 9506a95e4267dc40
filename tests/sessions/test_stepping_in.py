"""Somebody of the business takes part in a chat, by phone or by a reply of staff: the assistant
holds back what it has not sent, is silent for a while, and goes on with what is still open."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.integrations.llm.base import ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.base import SendError
from sessions_app.models import Chat, ChatPause, Message, Turn
from sessions_app.turns.turn_claims import pauses_end
from tests.sessions.desk import Desk
from tests.world import CLIENT, World, message_from

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def phone(world: World, text: str, **changes: Any) -> list[str]:
    """The owner writes to the client on the business's own phone."""
    return world.say(CLIENT, text, from_business=True, **changes)


def states() -> list[str]:
    return list(Turn.objects.order_by("id").values_list("state", flat=True))


def later(time: timedelta) -> None:
    """Let so much time pass: a pause that is over by then ends."""
    ChatPause.objects.update(until=F("until") - time)
    Turn.objects.update(asked_at=F("asked_at") - time)


def goes_on(world: World, time: timedelta = HOUR) -> list[str]:
    """What is answered by itself after that time."""
    later(time)
    sent = len(world.provider.sent)
    pauses_end(now=timezone.now(), enqueue=lambda _: None, max_age=DAY)
    world.work()
    return [part.text for part in world.provider.sent[sent:]]


def left() -> float:
    """How many minutes the pause still lasts."""
    until = ChatPause.objects.get().until
    assert until is not None
    return round((until - timezone.now()).total_seconds() / 60)


def test_the_owner_answers_first(world: World) -> None:
    world.receive(message_from(CLIENT, "Are you open?"))
    assert phone(world, "Yes, until nine") == []
    assert states() == ["cancelled"]
    assert world.say(CLIENT, "Great, and on Friday?") == []
    assert states() == ["cancelled", "held"]
    assert (ChatPause.objects.get().cause, left()) == ("owner", 60)


def test_while_the_model_works(world: World) -> None:
    def interrupted(request: ChatRequest) -> str:
        world.receive(message_from(CLIENT, "Yes, until nine", from_business=True))
        return "I don't know"

    world.use(chat_model=ScriptedChatModel(interrupted))
    assert world.say(CLIENT, "Are you open?") == []
    assert states() == ["cancelled"]
    assert not Message.objects.filter(content="I don't know").exists()


def test_an_answer_that_waits_to_be_sent_is_never_said(world: World) -> None:
    world.provider.fail_next(*[SendError("down") for _ in range(4)])
    assert world.say(CLIENT, "Are you open?") == []
    assert states() == ["replied"]
    phone(world, "Yes, until nine")
    assert states() == ["cancelled"]
    world.work()
    assert world.provider.sent == []
    goes_on(world)
    world.say(CLIENT, "Thanks")
    shown = [line.content for line in world.prompt()[1:]]
    assert shown == ["Are you open?", "Yes, until nine", "Thanks"]


def test_the_pause_slides_and_then_it_goes_on(world: World) -> None:
    phone(world, "Hello, this is Rosa")
    later(timedelta(minutes=40))
    assert left() == 20
    phone(world, "What would you like?")
    assert left() == 60
    assert world.say(CLIENT, "Two loaves, please") == []
    later(timedelta(minutes=59))
    assert world.say(CLIENT, "Are you there?") == []
    # Rosa has gone: the last message is answered, and the assistant knows what she said.
    assert goes_on(world) == ["answer to: Are you there?"]
    shown = [line.content for line in world.prompt()[1:]]
    assert shown == [
        *("Hello, this is Rosa", "What would you like?", "Two loaves, please", "Are you there?")
    ]
    assert not ChatPause.objects.exists()
    assert world.say(CLIENT, "Thanks") == ["answer to: Thanks"]


@pytest.mark.parametrize(
    ("asked", "then", "answer"),
    [
        ("Two loaves?", {"text": "", "kind": "sticker"}, "answer to: Two loaves?"),
        ("I want to talk to a person", {"text": "please"}, "I'm handing this over"),
    ],
)
def test_all_that_waits_is_heard(
    world: World, asked: str, then: dict[str, str], answer: str
) -> None:
    phone(world, "Hello")
    world.say(CLIENT, asked)
    world.say(CLIENT, **then)
    (said,) = goes_on(world)
    assert said.startswith(answer)


def test_what_was_settled_is_not_answered(world: World) -> None:
    phone(world, "Hello")
    world.say(CLIENT, "Two loaves, please")
    phone(world, "They are ready")
    assert goes_on(world) == []
    assert states() == ["cancelled"]


def test_what_is_too_old_is_not_answered(world: World) -> None:
    phone(world, "Hello")
    world.say(CLIENT, "Two loaves, please")
    assert goes_on(world, timedelta(hours=25)) == []


def test_what_was_taken_up_since_is_not_answered_again(world: World) -> None:
    """The pause is over, but no sweep has run yet: a newer message is answered before."""
    phone(world, "Hello")
    world.say(CLIENT, "Two loaves, please")
    later(timedelta(minutes=61))
    assert world.say(CLIENT, "Are you there?") == ["answer to: Are you there?"]
    assert goes_on(world) == []


def test_commands_work_meanwhile(world: World) -> None:
    world.receive(message_from(CLIENT, "/remember I like rye bread"))
    assert phone(world, "Hello") == ["✅ Remembered: I like rye bread"]
    assert world.say(CLIENT, "/memories")[0].startswith("🧠")


@pytest.mark.parametrize(("own", "minutes"), [(None, 60), (5, 5), (0, 0)])
def test_each_chat_may_have_its_own_time(world: World, own: int | None, minutes: int) -> None:
    world.say(CLIENT, "Hi")
    Chat.objects.update(owner_pause_minutes=own)
    phone(world, "Hello")
    if not minutes:
        assert world.say(CLIENT, "And now?") == ["answer to: And now?"]
        return
    assert left() == minutes


def test_a_late_echo_pauses_nothing_and_cancels_what_came_before_it(world: World) -> None:
    written = timezone.now() - timedelta(hours=2)
    world.receive(message_from(CLIENT, "Open?", timestamp=written - timedelta(minutes=1)))
    world.receive(message_from(CLIENT, "And on Friday?"))
    assert phone(world, "Yes", timestamp=written) == ["answer to: And on Friday?"]
    assert states() == ["cancelled", "sent"]


@pytest.mark.parametrize("memory", [True, False])
def test_a_message_that_comes_after_its_answer_by_phone(world: World, memory: bool) -> None:
    world.with_rules(memory_enabled=memory)
    now = timezone.now()
    phone(world, "Yes, until nine", timestamp=now)
    world.say(CLIENT, "Are you open?", timestamp=now - timedelta(seconds=5))
    assert states() == ["cancelled"]
    assert goes_on(world) == []


def test_a_pause_by_staff_stays_as_they_set_it(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    until = ChatPause.objects.get().until
    phone(world, "Hello")
    assert (ChatPause.objects.get().cause, ChatPause.objects.get().until) == ("staff", until)


def test_a_group_is_not_paused(world: World) -> None:
    group = {"group_id": "120363000000000001@g.us", "mentions_us": True}
    phone(world, "Hello all", **group)
    assert world.say(CLIENT, "@DeniDin hi", **group) == ["answer to: Test User: @DeniDin hi"]


def test_an_echo_of_our_own_answer_is_nobodys_word(world: World) -> None:
    world.say(CLIENT, "Hi")
    sent = world.provider.sent[0]
    phone(world, sent.text, provider_message_id=sent.provider_message_id)
    assert not ChatPause.objects.exists()
    assert world.say(CLIENT, "Still there?") == ["answer to: Still there?"]


def test_without_memory(world: World) -> None:
    world.with_rules(memory_enabled=False)
    world.receive(message_from(CLIENT, "Are you open?"))
    assert phone(world, "Yes") == []
    assert states() == ["cancelled"]
    assert not Turn.objects.exclude(unstored_text="").exists()
    assert world.say(CLIENT, "And now?") == []


def test_a_reply_by_staff_does_the_same(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    world.receive(message_from(CLIENT, "Are you open?"))
    desk.write("Until nine")
    world.work()
    assert [part.text for part in world.provider.sent[1:]] == ["Until nine"]
    assert states() == ["sent", "cancelled", "sent"]
    assert (ChatPause.objects.get().cause, left()) == ("reply", 60)
    assert world.say(CLIENT, "And on Friday?") == []
    assert goes_on(world) == ["answer to: And on Friday?"]


def test_staff_see_why(world: World, client: Client, admin_user: User) -> None:
    world.receive(message_from(CLIENT, "Are you open?"))
    phone(world, "Yes, until nine")
    goes_on(world)
    phone(world, "See you")
    client.force_login(admin_user)
    page = client.get(f"/admin/sessions_app/chat/{Chat.objects.get().pk}/conversation/")
    shown = page.content.decode()
    assert "The business has answered by phone." in shown
    assert "The assistant is paused: the business has answered by phone" in shown
    assert "The assistant goes on: the pause is over" in shown
    assert "From the business&#x27;s phone" in shown
    assert "Somebody of the business answered" in shown
