"""One answer to each message, whatever happens to workers, models and the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from memoryproject.foundation.integrations.llm.base import (
    ChatModelError,
    ChatRequest,
    OfflineChatModel,
)
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.leases import LeaseLostError
from sessions_app.models import InboundDelivery, Message, OutboundPart, Turn
from sessions_app.turns.turn_claims import turn_claim, turns_sweep
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from


def model_that(answer: Callable[[ChatRequest], str]) -> ScriptedChatModel:
    return ScriptedChatModel(answer)


def use_model(world: World, answer: Callable[[ChatRequest], str]) -> None:
    world.dependencies = replace(world.dependencies, chat_model=model_that(answer))


def at_once() -> None:
    """As if the time until the next try had passed."""
    Turn.objects.update(not_before=None)


def test_a_delivery_that_comes_again_is_stored_and_answered_once(world: World) -> None:
    event = message_from(CLIENT, "hello")
    world.receive(event, event)
    world.work()
    world.receive(event)
    world.work()
    assert [sent.text for sent in world.provider.sent] == ["answer to: hello"]
    assert InboundDelivery.objects.count() == 1
    assert Message.objects.count() == 2


def test_chats_do_not_wait_for_each_other(world: World) -> None:
    world.receive(message_from(CLIENT, "one"), message_from(OTHER_CLIENT, "other"))
    assert turn_claim(chat_id=world.chat(CLIENT).pk)
    assert turn_claim(chat_id=world.chat(CLIENT).pk) is None
    world.work()
    assert [sent.text for sent in world.provider.sent] == ["answer to: other"]


def test_a_worker_that_lost_its_lease_writes_nothing(world: World) -> None:
    def too_slow(request: ChatRequest) -> str:
        if len(world.dependencies.chat_model.requests) == 1:  # type: ignore[attr-defined]
            Turn.objects.update(lease_token=None, state="pending")
            return "the late worker's answer"
        return "the other worker's answer"

    use_model(world, too_slow)
    assert world.say(CLIENT, "hello") == ["the other worker's answer"]
    assert [message.content for message in world.messages(CLIENT)] == [
        "hello",
        "the other worker's answer",
    ]
    assert OutboundPart.objects.count() == 1


def test_a_lease_that_was_taken_over_cannot_be_renewed(world: World) -> None:
    world.receive(message_from(CLIENT, "hello"))
    lease = turn_claim(chat_id=world.chat(CLIENT).pk)
    assert lease is not None
    lease.renew()
    later = timezone.now() + timedelta(hours=1)
    other = turn_claim(chat_id=world.chat(CLIENT).pk, now=later)
    assert other is not None
    with pytest.raises(LeaseLostError):
        lease.renew()
    other.renew()


def test_the_lease_of_a_dead_process_is_taken_over_at_once(world: World) -> None:
    world.receive(message_from(CLIENT, "hello"))
    turn_claim(chat_id=world.chat(CLIENT).pk)
    owner = Turn.objects.get().lease_owner
    host, _, _ = owner.partition(":")
    Turn.objects.update(lease_owner=f"{host}:1:0.00")
    world.work()
    assert len(world.provider.sent) == 1


def sweep(world: World, **changes: Any) -> dict[str, int]:
    found: list[UUID] = []
    counts = turns_sweep(enqueue=found.append, unconfirmed_after=timedelta(minutes=15), **changes)
    assert counts["enqueued"] == len(found)
    return counts


def test_the_sweeper_enqueues_what_nobody_works_on(world: World) -> None:
    world.receive(message_from(CLIENT, "one"), message_from(CLIENT, "two"))
    world.receive(message_from(OTHER_CLIENT, "other"))
    assert sweep(world) == {"enqueued": 2, "unconfirmed": 0}
    turn_claim(chat_id=world.chat(CLIENT).pk)
    assert sweep(world)["enqueued"] == 1, "one chat has a living worker"
    assert sweep(world, now=timezone.now() + timedelta(hours=1))["enqueued"] == 2
    world.work()


def test_the_sweeper_lets_a_turn_wait_until_its_time(world: World) -> None:
    world.receive(message_from(CLIENT, "one"))
    Turn.objects.update(not_before=timezone.now() + timedelta(minutes=5))
    assert sweep(world)["enqueued"] == 0
    world.work()
    assert world.provider.sent == []
    assert sweep(world, now=timezone.now() + timedelta(minutes=6))["enqueued"] == 1


def test_a_turn_begun_before_a_merge_brought_an_older_one_is_finished_first(world: World) -> None:
    """One chat has one running turn: claiming the older one would fail for ever."""
    world.receive(message_from(OTHER_CLIENT, "older"), message_from(CLIENT, "begun"))
    turn_claim(chat_id=world.chat(CLIENT).pk)
    older = Turn.objects.get(message__content="older")
    older.chat = world.chat(CLIENT)
    older.save()
    assert turn_claim(chat_id=world.chat(CLIENT).pk) is None
    assert sweep(world)["enqueued"] == 0
    Turn.objects.update(lease_until=timezone.now())
    world.work()
    assert [sent.text for sent in world.provider.sent] == ["answer to: begun", "answer to: older"]


def test_a_message_too_old_when_it_arrives_is_stored_and_missed(world: World) -> None:
    old = timezone.now() - timedelta(hours=24, minutes=1)
    assert world.say(CLIENT, "hello?", timestamp=old) == []
    assert [message.content for message in world.messages(CLIENT)] == ["hello?"]
    assert Turn.objects.get().state == "missed"
    assert world.say(CLIENT, "anyone?") == ["answer to: anyone?"]


def test_a_message_too_old_when_its_turn_comes_is_missed(world: World) -> None:
    world.receive(message_from(CLIENT, "hello?"))
    Turn.objects.update(asked_at=timezone.now() - timedelta(hours=24, minutes=1))
    world.work()
    assert world.provider.sent == []
    assert Turn.objects.get().state == "missed"


def test_a_message_just_within_the_window_is_answered(world: World) -> None:
    nearly = timezone.now() - timedelta(hours=23, minutes=59)
    assert world.say(CLIENT, "hello?", timestamp=nearly) == ["answer to: hello?"]


def test_a_fault_that_passes_costs_no_answer_and_later_messages_wait(world: World) -> None:
    answers: Iterator[str | Exception] = iter([ZeroDivisionError("once"), "one", "two"])

    def flaky(_: ChatRequest) -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    use_model(world, flaky)
    world.receive(message_from(CLIENT, "1"), message_from(CLIENT, "2"))
    world.work()
    assert [sent.text for sent in world.provider.sent] == ["one", "two"]


def without_model(world: World) -> None:
    def fails(_: ChatRequest) -> str:
        raise ChatModelError("The model server could not be reached.")

    use_model(world, fails)


def test_without_the_model_the_answer_is_made_of_what_is_remembered(world: World) -> None:
    world.remember(GODFATHER, "TestCorp owes me ₪5,000")
    without_model(world)

    (reply,) = world.say(GODFATHER, "What's the status with TestCorp?")

    assert "I can't reach my language model" in reply
    assert "• TestCorp owes me ₪5,000" in reply
    turn = Turn.objects.latest("id")
    assert turn.error == "The model server could not be reached."
    assert turn.state == "sent"


@pytest.mark.parametrize(
    ("text", "apology"),
    [("hello", "Sorry, I can't answer right now."), ("שלום", "סליחה, אני לא מצליח לענות כרגע.")],
)
def test_without_model_and_memories_there_is_an_apology(
    world: World, text: str, apology: str
) -> None:
    without_model(world)
    (reply,) = world.say(CLIENT, text)
    assert reply.startswith(apology)


def test_apologies_are_no_knowledge(world: World) -> None:
    without_model(world)
    world.say(CLIENT, "hello")
    world.say(CLIENT, "/reset")
    world.dependencies = replace(world.dependencies, chat_model=OfflineChatModel())
    (reply,) = world.say(CLIENT, "Sorry, can't you answer right now?")
    assert "•" not in reply


def test_every_answer_has_its_replay_record(world: World) -> None:
    world.remember(GODFATHER, "TestCorp owes me ₪5,000")
    world.say(GODFATHER, "What's the status with TestCorp?")

    command, turn = Turn.objects.order_by("id")

    assert command.replay.model == "command"
    assert turn.replay.prompt == [message.as_dict() for message in world.prompt()]
    (hit,) = turn.replay.recalled
    assert set(hit) == {
        "source",
        "id",
        "content",
        "score",
        "similarity",
        "created_at",
        "type",
        "said_at",
        "said_by",
        "in_prompt",
    }
    assert turn.replay.left_out == {
        "messages_until": 0,
        "messages_over_context": 0,
        "recalled": 0,
        "messages_cut": 0,
        "recalled_cut": 0,
        "profile_cut": 0,
        "refused_prompts": 0,
        "recall_degraded": False,
        "passage": "",
        "summarized_until": 0,
    }
    assert turn.replay.model == "scripted"
    assert turn.replay.prompt_tokens > 0
    assert turn.replay.completion_tokens == len(
        b"answer to: What's the status with TestCorp?".split()
    )
    assert set(turn.replay.timings) == {"waited_ms", "recall_ms", "model_ms", "total_ms"}
    assert turn.error == ""
    assert turn.reply.answers_id == turn.message_id
    assert turn.finished_at >= turn.created_at


def test_the_replay_says_which_recalled_texts_did_not_fit(world: World) -> None:
    for number in range(4):
        world.remember(GODFATHER, f"TestCorp fact {number}: ".ljust(900, "x"))
    world.say(GODFATHER, "/reset")
    world.with_answer_rules(max_context_tokens=700)

    world.say(GODFATHER, "What do you know about TestCorp?")

    turn = Turn.objects.latest("id")
    assert len(turn.replay.recalled) == 4
    kept = [hit["in_prompt"] for hit in turn.replay.recalled]
    assert kept == sorted(kept, reverse=True)
    assert turn.replay.left_out["recalled"] == kept.count(False) > 0


def test_the_message_is_shown_as_read_before_it_is_answered(world: World) -> None:
    event = message_from(CLIENT, "hello")
    world.receive(event)
    world.work()
    (mark,) = world.provider.read
    assert (mark.provider_message_id, mark.typing) == (event.provider_message_id, True)
