"""Answers go out once: in parts, with retries, and never twice by themselves."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.base import SendError, SendResult
from memoryproject.foundation.integrations.whatsapp.events import OwnSend
from sessions_app.models import Message, OutboundPart, Turn
from sessions_app.turns.queue import chat_answer
from sessions_app.turns.rerun import RerunRefusedError, turn_rerun
from sessions_app.turns.turn_claims import turns_ready, turns_sweep
from tests.doubles.recording_provider import RecordingProvider
from tests.events import status
from tests.world import CLIENT, World, message_from

REFUSED = SendError("no route")
UNKNOWN = SendError("timed out", outcome_unknown=True)
UNDELIVERABLE = SendError("undeliverable", permanent=True, code=131026)


def report(world: World, name: str, **changes: Any) -> None:
    """A status webhook for the last message that we sent."""
    world.receive(status(world.provider.sent[-1].provider_message_id, name, **changes))


def sweep(minutes: int) -> dict[str, int]:
    """The sweeper, that many minutes from now."""
    return turns_sweep(
        unconfirmed_after=timedelta(minutes=15), now=timezone.now() + timedelta(minutes=minutes)
    )


def send_again(world: World, turn: Turn) -> str:
    """What staff do."""
    return turn_rerun(
        turn_id=turn.pk,
        actor=Actor("staff", "dana"),
        max_age=timedelta(hours=24),
        enqueue=world.enqueued.append,
        now=timezone.now(),
    )


def reply() -> Message:
    return Message.objects.get(role="assistant")


def test_a_long_answer_goes_out_in_parts_in_order(world: World) -> None:
    words = " ".join(f"word{number}" for number in range(150))
    long = "\n\n".join(f"Paragraph {place}. {words}" for place in range(5))
    world.use(chat_model=ScriptedChatModel(lambda _: long))
    parts = world.say(CLIENT, "Tell me everything")
    assert len(parts) > 1
    assert all(len(part) <= 4096 for part in parts)
    assert "".join("".join(parts).split()) == "".join(long.split())
    assert reply().content == long
    assert reply().provider_message_id == world.provider.sent[0].provider_message_id


def test_markdown_becomes_whatsapps_formatting(world: World) -> None:
    world.use(chat_model=ScriptedChatModel(lambda _: "**Bold** and [a link](https://x.example)"))
    assert world.say(CLIENT, "Hi") == ["*Bold* and a link (https://x.example)"]


@pytest.mark.parametrize(
    ("answer", "opened", "closed"),
    [
        ("```\n" + "".join(f"print({each})\n" for each in range(900)) + "```", "```\n", "\n```"),
        ("**" + "".join(f"bold {each} " for each in range(1_000)) + "end**", "*", "*"),
        ("# " + "".join(f"heading {each} " for each in range(800)), "*", "*"),
        ("> **" + "".join(f"said in bold {each}. " for each in range(900)) + "end**", "", "*"),
    ],
)
def test_no_part_of_a_long_answer_leaves_a_mark_open(
    world: World, answer: str, opened: str, closed: str
) -> None:
    world.use(chat_model=ScriptedChatModel(lambda _: answer))
    parts = world.say(CLIENT, "Tell me everything")
    assert len(parts) > 2
    assert all(part.startswith(opened) and part.endswith(closed) for part in parts)
    assert all(len(part) <= 4096 for part in parts)
    assert re.findall(r"\w+", " ".join(parts)) == re.findall(r"\w+", answer)


def test_a_passing_failure_is_tried_again_after_1_2_and_4_seconds(world: World) -> None:
    waits: list[float] = []
    world.use(sleep=waits.append)
    world.provider.fail_next(REFUSED, REFUSED, REFUSED)
    assert world.say(CLIENT, "Hi") == ["answer to: Hi"]
    assert waits == [1.0, 2.0, 4.0]
    assert Turn.objects.get().state == "sent"


def test_after_the_retries_the_answer_waits_for_a_later_try(world: World) -> None:
    world.provider.fail_next(REFUSED, REFUSED, REFUSED, REFUSED)
    assert world.say(CLIENT, "Hi") == []
    turn = Turn.objects.get()
    assert turn.state == "replied"
    assert turn.not_before is not None
    assert turn.error == "no route"
    now = timezone.now()
    assert not turns_ready(now)
    assert list(turns_ready(now + timedelta(minutes=2))) == [turn]
    Turn.objects.update(not_before=None)
    world.work()
    assert [part.text for part in world.provider.sent] == ["answer to: Hi"]


def test_a_final_failure_ends_the_turn_and_staff_send_it_again(world: World) -> None:
    world.provider.fail_next(UNDELIVERABLE)
    assert world.say(CLIENT, "Hi") == []
    turn = Turn.objects.get()
    assert (turn.state, turn.error) == ("failed", "undeliverable")
    assert reply().delivery_status == "failed"
    assert send_again(world, turn) == "send"
    world.work()
    assert [part.text for part in world.provider.sent] == ["answer to: Hi"]
    assert Turn.objects.get().state == "sent"
    with pytest.raises(RerunRefusedError, match="not_in_trouble"):
        send_again(world, turn)


def test_a_send_that_may_have_happened_is_never_repeated_by_itself(world: World) -> None:
    world.provider.fail_next(UNKNOWN)
    world.say(CLIENT, "Hi")
    assert Turn.objects.get().state == "sending"
    assert sweep(minutes=5)["unconfirmed"] == 0
    assert sweep(minutes=16)["unconfirmed"] == 1
    world.work()
    assert world.provider.sent == []
    assert Turn.objects.get().state == "unconfirmed"
    assert world.say(CLIENT, "And now?") == ["answer to: And now?"]
    first = Turn.objects.earliest("id")
    assert send_again(world, first) == "send"
    world.work()
    assert world.provider.sent[-1].text == "answer to: Hi"


def test_a_status_with_our_id_confirms_a_send_whose_answer_was_lost(world: World) -> None:
    world.provider.fail_next(UNKNOWN, carried_out=True)
    world.say(CLIENT, "Hi")
    part = OutboundPart.objects.get()
    report(world, "sent", callback_id=str(part.id))
    assert Turn.objects.get().state == "sent"
    assert reply().provider_message_id == world.provider.sent[0].provider_message_id
    assert reply().delivery_status == "sent"


def test_green_apis_echo_confirms_a_send_whose_answer_was_lost(world: World) -> None:
    world.receive()
    green = world.dependencies.providers["green"]
    green.fail_next(UNKNOWN)  # type: ignore[attr-defined]
    world.say(CLIENT, "Hi", provider="green", number_id="1101000001")
    assert Turn.objects.get().state == "sending"
    echo = OwnSend(
        provider="green",
        number_id="1101000001",
        delivery_key="echo",
        provider_message_id="3EB0",
        whatsapp_chat=CLIENT,
        text="answer to: Hi",
        timestamp=timezone.now(),
    )
    world.receive(echo)
    assert Turn.objects.get().state == "sent"
    assert OutboundPart.objects.get().provider_message_id == "3EB0"


def test_the_echo_of_a_send_that_was_taken_for_an_older_one_is_put_right(world: World) -> None:
    class QuickEcho(RecordingProvider):
        """Its echo comes before its answer, and finds another part of the same text first."""

        def send_text(self, *, callback_id: str, **told: Any) -> SendResult:
            result = super().send_text(callback_id=callback_id, **told)
            others = OutboundPart.objects.exclude(pk=callback_id)
            others.update(provider_message_id=result.provider_message_id)
            return result

    world.say(CLIENT, "Hi")
    older = OutboundPart.objects.get()
    providers = {**world.dependencies.providers, "cloud": QuickEcho(name="cloud")}
    world.use(providers=providers)
    world.say(CLIENT, "Hi")
    newer = OutboundPart.objects.exclude(pk=older.pk).get()
    older.refresh_from_db()
    assert (older.state, older.provider_message_id) == ("unconfirmed", None)
    assert (newer.state, newer.provider_message_id) == ("sent", f"recorded.{newer.pk}")


def test_the_rest_of_a_long_answer_follows_once_a_doubtful_part_is_confirmed(world: World) -> None:
    long = "first " * 700 + "\n\n" + "second " * 400
    world.use(chat_model=ScriptedChatModel(lambda _: long))
    world.provider.fail_next(UNKNOWN, carried_out=True)
    world.say(CLIENT, "Hi")
    assert len(world.provider.sent) == 1
    report(world, "sent", callback_id=str(OutboundPart.objects.get(number=1).id))
    world.work()
    assert len(world.provider.sent) == OutboundPart.objects.count()
    assert Turn.objects.get().state == "sent"


@pytest.mark.parametrize(
    ("told", "ends"),
    [
        (["sent", "delivered", "read"], "read"),
        (["read", "delivered", "sent"], "read"),
        (["delivered", "played", "read"], "played"),
        (["delivered", "failed", "read"], "failed"),
        (["failed", "delivered"], "failed"),
    ],
)
def test_statuses_move_up_and_failed_is_final(world: World, told: list[str], ends: str) -> None:
    world.say(CLIENT, "Hi")
    assert (reply().delivery_status, reply().was_received) == ("sent", False)
    for name in told:
        report(world, name)
    assert reply().delivery_status == ends
    assert reply().was_received == (ends != "failed")


def test_a_status_before_our_own_commit_is_applied_when_it_comes(world: World) -> None:
    class Hasty(RecordingProvider):
        """A provider whose status webhook is faster than its own answer."""

        def send_text(self, **request: Any) -> Any:
            result = world.provider.send_text(**request)
            report(world, "delivered")
            return result

    recording = world.provider
    hasty = Hasty(name="cloud")
    dependencies = replace(
        world.dependencies, providers={**world.dependencies.providers, "cloud": hasty}
    )

    world.receive(message_from(CLIENT, "Hi"))
    chat_answer(chat_id=world.chat(CLIENT).pk, dependencies=dependencies)
    assert len(recording.sent) == 1
    assert (reply().delivery_status, reply().was_received) == ("delivered", True)
    assert Turn.objects.get().state == "sent"
