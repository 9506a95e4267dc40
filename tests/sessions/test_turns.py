"""One answer to each message, whatever happens to workers, models and the clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.llm.base import ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.staff_site.models import Mark
from sessions_app.conversations.redact_derived import exposure_of
from sessions_app.forgetting.person_export import person_export
from sessions_app.models import InboundDelivery, Message, OutboundPart, Turn, TurnReplay
from sessions_app.turns.turn_claims import turn_claim, turns_ready, turns_sweep
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from


def model_that(answer: Callable[[ChatRequest], str]) -> ScriptedChatModel:
    return ScriptedChatModel(answer)


def use_model(world: World, answer: Callable[[ChatRequest], str]) -> None:
    world.use(chat_model=model_that(answer))


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


def ready(now: datetime | None = None) -> list[str]:
    """The chats that may be answered, the longest waiting first."""
    turns = turns_ready(now or timezone.now())
    return list(dict.fromkeys(turns.values_list("chat__whatsapp_chat", flat=True)))


def test_what_nobody_works_on_is_ready(world: World) -> None:
    world.receive(message_from(CLIENT, "one"), message_from(CLIENT, "two"))
    world.receive(message_from(OTHER_CLIENT, "other"))
    assert ready() == [CLIENT, OTHER_CLIENT]
    turn_claim(chat_id=world.chat(CLIENT).pk)
    assert ready() == [OTHER_CLIENT], "one chat has a worker"
    assert ready(timezone.now() + timedelta(hours=1)) == [CLIENT, OTHER_CLIENT]


def test_what_a_dead_worker_left_is_released(world: World) -> None:
    world.receive(message_from(CLIENT, "one"))
    turn_claim(chat_id=world.chat(CLIENT).pk)
    minutes = timedelta(minutes=15)
    assert turns_sweep(unconfirmed_after=minutes) == {"enqueued": 0, "unconfirmed": 0}
    host, _, _ = Turn.objects.get().lease_owner.partition(":")
    Turn.objects.update(lease_owner=f"{host}:1:0.00")
    assert ready() == []
    assert turns_sweep(unconfirmed_after=minutes) == {"enqueued": 1, "unconfirmed": 0}
    assert ready() == [CLIENT]


def test_a_turn_waits_until_its_time(world: World) -> None:
    world.receive(message_from(CLIENT, "one"), message_from(CLIENT, "two"))
    first = Turn.objects.earliest("id")
    Turn.objects.filter(pk=first.pk).update(not_before=timezone.now() + timedelta(minutes=5))
    assert ready() == []
    world.work()
    assert world.provider.sent == []
    assert ready(timezone.now() + timedelta(minutes=6)) == [CLIENT]


def test_a_turn_begun_before_a_merge_brought_an_older_one_is_finished_first(world: World) -> None:
    """One chat has one running turn: claiming the older one would fail for ever."""
    world.receive(message_from(OTHER_CLIENT, "older"), message_from(CLIENT, "begun"))
    turn_claim(chat_id=world.chat(CLIENT).pk)
    older = Turn.objects.get(message__content="older")
    older.chat = world.chat(CLIENT)
    older.save()
    assert turn_claim(chat_id=world.chat(CLIENT).pk) is None
    assert ready() == []
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
def test_without_anything_there_is_an_apology(world: World, text: str, apology: str) -> None:
    without_model(world)
    (reply,) = world.say(CLIENT, text)
    assert reply.startswith(apology)


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


# The replay record stands beside its turn: what reads it, also before there is one.


def test_the_replay_of_an_earlier_answer_is_replaced(world: World) -> None:
    world.receive(message_from(CLIENT, "Hello"))
    before = {"model": "before", "prompt": [{"role": "user"}], "left_out": {"messages": 3}}
    TurnReplay.objects.create(turn=Turn.objects.get(), prompt_tokens=7, **before)
    world.work()
    replay = TurnReplay.objects.get()
    assert replay.model == "scripted"
    assert replay.prompt_tokens != 7
    assert replay.prompt == [message.as_dict() for message in world.prompt()]
    assert replay.left_out != before["left_out"]


def test_a_person_is_given_each_turn_with_its_replay_in_it(world: World) -> None:
    world.say(CLIENT, "Hello")
    world.receive(message_from(CLIENT, "And?"))
    lines = person_export(chat=world.chat(CLIENT), actor=SYSTEM)
    turns = [line for line in map(json.loads, lines) if line["record"] == "turn"]
    assert [turn["model"] for turn in turns] == ["scripted", ""]
    assert [bool(turn["prompt"]) for turn in turns] == [True, False]
    assert [turn["state"] for turn in turns] == ["sent", "pending"]


def test_where_a_memory_was_told_is_found_in_answers_and_in_lists(world: World) -> None:
    recalled, listed, other = uuid4(), uuid4(), uuid4()
    world.say(CLIENT, "Hello")
    world.say(OTHER_CLIENT, "Hello")
    ours = TurnReplay.objects.filter(turn__chat=world.chat(CLIENT))
    ours.update(recalled=[{"id": str(recalled)}, {"id": str(other)}])
    theirs = TurnReplay.objects.filter(turn__chat=world.chat(OTHER_CLIENT))
    theirs.update(shown=[str(listed), str(recalled)])
    assert exposure_of([recalled, listed]) == {
        world.chat(CLIENT).pk: {recalled},
        world.chat(OTHER_CLIENT).pk: {recalled, listed},
    }
    assert exposure_of([uuid4()]) == {}


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)


def indexes_used(queries: CaptureQueriesContext, *, off: str = "seqscan") -> set[str]:
    """The indexes by which the statements are answered where the plans in ``off`` are avoided."""
    found: set[str] = set()
    with connection.cursor() as cursor:
        for plan in off.split():
            cursor.execute(f"SET LOCAL enable_{plan} = off")
        for query in list(queries):
            if "sessions_app_turnreplay" in query["sql"]:
                cursor.execute("EXPLAIN (FORMAT JSON) " + query["sql"])
                (plan,) = cursor.fetchone()[0]
                found |= {
                    node["Index Name"] for node in nodes(plan["Plan"]) if "Index Name" in node
                }
    return found


def test_an_index_finds_where_a_memory_was_told(world: World) -> None:
    with CaptureQueriesContext(connection) as queries:
        exposure_of([uuid4()])
    # A GIN index is read into a bitmap. Of so few rows, all could as well be read by their key.
    used = indexes_used(queries, off="seqscan indexscan indexonlyscan nestloop")
    # Of each month there is one.
    assert "turns_telling_before" in used


def test_a_replay_that_changes_marks_the_quarter_of_its_turn(world: World) -> None:
    world.say(CLIENT, "Hello")
    Mark.objects.all().delete()
    TurnReplay.objects.update(left_out={"recalled": 1})
    assert not Mark.objects.exists(), "no figure changes"
    TurnReplay.objects.update(prompt_tokens=1234)
    assert Mark.objects.count() == 1
    Mark.objects.all().delete()
    replay = TurnReplay.objects.get()
    TurnReplay.objects.all().delete()
    replay.save(force_insert=True)
    assert Mark.objects.count() == 1


def test_a_transaction_marks_a_quarter_once_unless_the_mark_is_undone(world: World) -> None:
    world.say(CLIENT, "Hello")
    Mark.objects.all().delete()
    Turn.objects.update(state="replied")
    assert Mark.objects.count() == 1, "it counted as sent"
    Mark.objects.all().delete()
    Turn.objects.update(state="sending")
    assert not Mark.objects.exists(), "none of these states is counted"
    with transaction.atomic():
        with suppress(KeyError), transaction.atomic():
            Turn.objects.update(state="failed")
            raise KeyError
        assert not Mark.objects.exists()
        Turn.objects.update(state="failed")
        Turn.objects.update(state="missed")
        TurnReplay.objects.update(prompt_tokens=1234)
        assert Mark.objects.count() == 1
