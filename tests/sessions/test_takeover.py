"""Staff pause the assistant in a chat, and let it go on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.llm.base import ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.base import SendError
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.inbound.synchronous_chat import NoAnswerError, talk
from sessions_app.models import Chat, ChatPause, Message, Turn
from sessions_app.turns.turn_claims import pauses_end, turn_claim, turns_ready
from tests.events import revocation
from tests.sessions.desk import Desk
from tests.threads import in_threads
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

GROUP = "120363000000000001"
BSUID = "US.10000000000000000001"
HOUR = timedelta(hours=1)


def ends() -> int:
    """How many pauses a sweep ends now."""
    return pauses_end(now=timezone.now(), enqueue=lambda _: None, max_age=24 * HOUR)


def states() -> list[str]:
    return list(Turn.objects.order_by("id").values_list("state", flat=True))


def actions() -> list[str]:
    told = AuditEvent.objects.filter(action__startswith="takeover.")
    return list(told.order_by("id").values_list("action", flat=True))


def test_while_paused_messages_are_stored(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    assert world.say(CLIENT, "Is anybody there?") == []
    assert world.say(OTHER_CLIENT, "Hello") == ["answer to: Hello"]
    assert [message.content for message in world.messages(CLIENT)][-1] == "Is anybody there?"
    assert states() == ["sent", "held", "sent"]
    assert not turns_ready(timezone.now())


def test_resumed_it_answers_and_knows_what_was_said(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    world.say(CLIENT, "My room is number nine")
    assert desk.resume().was_paused
    assert world.say(CLIENT, "Which room?") == ["answer to: Which room?"]
    assert "My room is number nine" in [line.content for line in world.prompt()]
    assert states() == ["sent", "held", "sent"]
    assert actions() == ["takeover.pause", "takeover.resume"]


def test_resumed_with_it_the_last_message_is_answered_once(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    world.say(CLIENT, "First")
    world.say(CLIENT, "Last")
    assert desk.resume(answer_last=True).answering is not None
    assert not desk.resume(answer_last=True).was_paused
    world.work()
    assert [part.text for part in world.provider.sent[1:]] == ["answer to: Last"]
    assert states() == ["sent", "held", "sent"]


def test_what_staff_answered_is_not_answered_again(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    world.say(CLIENT, "A question")
    desk.write("My answer")
    world.work()
    assert desk.resume(answer_last=True).answering is None
    world.work()
    assert world.provider.sent[-1].text == "My answer"


@pytest.mark.parametrize("hours", [23, 25])
def test_only_what_is_young_is_answered_at_last(world: World, desk: Desk, hours: int) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    world.say(CLIENT, "Old")
    Turn.objects.filter(state="held").update(asked_at=timezone.now() - timedelta(hours=hours))
    assert (desk.resume(answer_last=True).answering is not None) == (hours < 24)


def test_a_pause_ends_by_itself_when_its_time_is_over(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause(until=timezone.now() + HOUR)
    world.say(CLIENT, "Held")
    ChatPause.objects.update(until=timezone.now() - timedelta(seconds=1))
    # Before any sweep.
    assert world.say(CLIENT, "Answered") == ["answer to: Answered"]
    assert [ends(), ends()] == [1, 0]
    assert not ChatPause.objects.exists()
    last = AuditEvent.objects.filter(action="takeover.resume").get()
    assert (last.actor_kind, last.details) == ("system", {"by": "time", "answers_last": False})
    assert states() == ["sent", "held", "sent"]


def test_the_sweep_leaves_pauses_in_force_alone(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    world.say(OTHER_CLIENT, "Hi")
    desk.pause(until=timezone.now() + HOUR)
    desk.pause(OTHER_CLIENT)
    assert ends() == 0
    assert ChatPause.objects.count() == 2


def test_a_second_pause_sets_a_new_end(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    first = desk.pause()
    until = timezone.now() + HOUR
    second = desk.pause(until=until)
    assert (second.since, second.until) == (first.since, until)
    assert ChatPause.objects.count() == 1


def test_what_waits_when_it_is_paused_is_held(world: World, desk: Desk) -> None:
    world.receive(message_from(CLIENT, "Waiting"), message_from(CLIENT, "/memories"))
    desk.pause()
    assert states() == ["held", "pending"]
    world.work()
    assert states() == ["held", "sent"]


def test_what_is_being_answered_when_it_is_paused_is_not_sent(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")

    def paused_meanwhile(_: ChatRequest) -> str:
        desk.pause()
        return "too late"

    world.use(chat_model=ScriptedChatModel(paused_meanwhile))
    assert world.say(CLIENT, "Just now") == []
    assert states() == ["sent", "held"]
    assert "too late" not in [message.content for message in world.messages(CLIENT)]


def test_an_answer_that_was_stored_before_still_goes_out(world: World, desk: Desk) -> None:
    world.provider.fail_next(*[SendError("no route")] * 4)
    world.say(CLIENT, "Hi")
    desk.pause()
    Turn.objects.update(not_before=None)
    world.work()
    assert [part.text for part in world.provider.sent] == ["answer to: Hi"]


def test_commands_are_carried_out_while_it_is_paused(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    world.remember(CLIENT, "My dog is called Rex")
    assert Memory.objects.count() == 1
    world.say(CLIENT, "/forget Rex")
    assert Memory.objects.count() == 0


@pytest.mark.parametrize("paused", ["old", "young"])
def test_of_two_merged_chats_the_pause_goes_on(world: World, desk: Desk, paused: str) -> None:
    world.say(CLIENT, "by id", party=Party(bsuid=BSUID))
    world.say(CLIENT, "by phone")
    young, old = Chat.objects.order_by("-created_at")
    desk.pause((young if paused == "young" else old).whatsapp_chat)
    world.receive(message_from(CLIENT, "waits", party=Party(bsuid=BSUID)))
    world.receive(message_from(CLIENT, "waits, too"))
    world.receive(message_from(CLIENT, "both", party=Party(phone=CLIENT[:-5], bsuid=BSUID)))
    world.work()
    assert Chat.objects.get().pause.until is None
    assert states() == ["sent", "sent", "held", "held", "held"]


def test_groups_are_paused_as_well(world: World, desk: Desk) -> None:
    group = {"group_id": GROUP, "mentions_us": True}
    world.say(CLIENT, "hello", **group)
    desk.pause(f"{GROUP}@g.us")
    assert world.say(CLIENT, "hello again", **group) == []
    assert world.say(CLIENT, "just me") == ["answer to: just me"]


def test_without_memory_what_is_held_goes_with_the_pause(world: World, desk: Desk) -> None:
    world.with_rules(memory_enabled=False)
    world.say(CLIENT, "Hi")
    desk.pause()
    world.say(CLIENT, "First secret")
    world.say(CLIENT, "Second secret")
    assert Turn.objects.filter(unstored_text__contains="secret").count() == 2
    assert desk.resume(answer_last=True).answering is not None
    world.work()
    assert world.provider.sent[-1].text == "answer to: Second secret"
    assert Message.objects.count() == 0
    assert not Turn.objects.exclude(unstored_text="", unstored_reply="").exists()


@pytest.mark.parametrize("memory", [True, False])
def test_a_deleted_message_is_not_answered(world: World, desk: Desk, memory: bool) -> None:
    world.with_rules(memory_enabled=memory)
    world.say(CLIENT, "Hi")
    desk.pause()
    event = message_from(CLIENT, "oops")
    world.receive(event)
    world.receive(revocation(event.provider_message_id))
    assert states() == ["sent", "cancelled"]
    assert desk.resume(answer_last=True).answering is None


def test_who_waits_at_the_api_is_told(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    with pytest.raises(NoAnswerError, match="paused"):
        talk(
            whatsapp_chat=CLIENT,
            content="Hello?",
            dependencies=world.dependencies,
            rules=world.rules,
            now=timezone.now(),
        )


@pytest.mark.django_db(transaction=True)
def test_several_who_resume_at_once_answer_once(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    world.say(CLIENT, "Last")
    results: list[Any] = in_threads(lambda: desk.resume(answer_last=True), 6)
    assert sorted(result.was_paused for result in results) == [False] * 5 + [True]
    world.work()
    assert world.provider.sent[-1].text == "answer to: Last"
    assert len(world.provider.sent) == 2


@pytest.mark.django_db(transaction=True)
def test_a_pause_at_the_moment_of_a_claim_is_kept(world: World, desk: Desk) -> None:
    """Whoever comes first: after both the turn isn't in work."""
    world.say(CLIENT, "Hi")
    chat_id = world.chat(CLIENT).pk
    for _ in range(8):
        world.receive(message_from(CLIENT, "Now"))
        todo = [desk.pause, lambda: turn_claim(chat_id=chat_id)]
        in_threads(lambda todo=todo: todo.pop()(), 2)  # type: ignore[misc]
        assert set(states()[1:]) == {"held"}
        desk.resume()


def test_the_scripted_model_is_asked_nothing_while_it_is_paused(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    model = world.dependencies.chat_model
    assert isinstance(model, ScriptedChatModel)
    asked = len(model.requests)
    desk.pause()
    world.say(CLIENT, "Held")
    assert len(model.requests) == asked
