"""TURN_DEBOUNCE_SECONDS: a burst of messages is answered as one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from django.db.models import F

from memories_app.models import Memory
from sessions_app.models import Turn
from sessions_app.turns.queue import burst_wait, chat_answer
from sessions_app.turns.turn_claims import turn_claim
from tests.events import revocation
from tests.world import CLIENT, World, message_from

GROUP = {"group_id": "120363000000000001@g.us", "mentions_us": True}
MINUTE = timedelta(minutes=1)


def time_passes(seconds: float) -> None:
    """Let every message be so much older, instead of waiting."""
    Turn.objects.update(created_at=F("created_at") - timedelta(seconds=seconds))


def answer(world: World, chat: str = CLIENT) -> list[str]:
    dependencies = replace(world.dependencies, sleep=time_passes)
    chat_answer(chat_id=world.chat(chat).pk, dependencies=dependencies, debounce=MINUTE)
    return [sent.text for sent in world.provider.sent]


def states() -> list[str]:
    return list(Turn.objects.order_by("id").values_list("state", flat=True))


def test_a_burst_gets_one_answer_to_its_newest_message(world: World) -> None:
    world.receive(*(message_from(CLIENT, text) for text in ("Hi", "one thing:", "the price?")))
    assert answer(world) == ["answer to: the price?"]
    assert states() == ["merged", "merged", "sent"]
    assert [message.content for message in world.prompt()[1:]] == ["Hi", "one thing:", "the price?"]
    newest = Turn.objects.latest("id")
    assert {turn.context["merged_into"] for turn in Turn.objects.filter(state="merged")} == {
        str(newest.turn_id)
    }


def test_who_keeps_writing_is_waited_for(world: World) -> None:
    more = iter(["and more", "and the last"])
    waits: list[float] = []

    def writes_again(seconds: float) -> None:
        time_passes(seconds)
        waits.append(seconds)
        text = next(more, None)
        if text:
            world.receive(message_from(CLIENT, text))

    world.receive(message_from(CLIENT, "first"))
    lease = turn_claim(chat_id=world.chat(CLIENT).pk)
    assert lease is not None

    merged = burst_wait(lease=lease, debounce=MINUTE, sleep=writes_again)

    assert Turn.objects.get(pk=merged.turn_id).message.content == "and the last"
    assert len(waits) == 3
    assert all(0 < wait <= 60 for wait in waits)


def test_a_command_ends_a_burst_and_is_carried_out(world: World) -> None:
    texts = ("Hi", "listen", "/remember Tea is at five", "clear?", "really?")
    world.receive(*(message_from(CLIENT, text) for text in texts))
    assert answer(world) == [
        "answer to: listen",
        "✅ Remembered: Tea is at five",
        "answer to: really?",
    ]
    assert Memory.objects.get().content == "Tea is at five"


def test_in_a_group_a_command_after_a_mention_ends_a_burst_too(world: World) -> None:
    texts = ("@DeniDin hi", "@DeniDin /remember Tea is at five", "@DeniDin ok?")
    world.receive(*(message_from(CLIENT, text, **GROUP) for text in texts))
    answer(world, "120363000000000001@g.us")
    assert Memory.objects.get().content == "Tea is at five"
    assert len(world.provider.sent) == 3


def test_a_picture_at_the_end_does_not_swallow_the_question(world: World) -> None:
    world.receive(message_from(CLIENT, "What does this cost?"))
    world.receive(message_from(CLIENT, "", kind="image"))
    replies = answer(world)
    assert replies[0] == "answer to: What does this cost?"
    assert replies[1].startswith("I received your picture")


def test_a_picture_before_the_question_is_part_of_it(world: World) -> None:
    world.receive(message_from(CLIENT, "", kind="image"))
    world.receive(message_from(CLIENT, "What does this cost?"))
    assert answer(world) == ["answer to: What does this cost?"]
    assert [message.content for message in world.prompt()[1:]] == [
        "[image]",
        "What does this cost?",
    ]


def test_a_revoked_newest_message_leaves_the_others_answered(world: World) -> None:
    last = message_from(CLIENT, "never mind")
    world.receive(message_from(CLIENT, "a question"), last, revocation(last.provider_message_id))
    assert answer(world) == ["answer to: a question"]
    assert states() == ["sent", "cancelled"]


def test_an_answer_that_only_waits_to_be_sent_is_no_part_of_a_burst(world: World) -> None:
    world.say(CLIENT, "first")
    Turn.objects.update(state="replied")
    Turn.objects.get().parts.update(state="waiting", content="answer to: first")
    world.receive(message_from(CLIENT, "second"), message_from(CLIENT, "third"))
    assert answer(world)[1:] == ["answer to: first", "answer to: third"]
    assert states() == ["sent", "merged", "sent"]


def test_a_message_whose_answer_somebody_waits_for_is_no_part_of_a_burst(world: World) -> None:
    asked = message_from(CLIENT, "asked by the API", provider="console", number_id="")
    world.receive(message_from(CLIENT, "Hi"), asked, message_from(CLIENT, "the price?"))
    assert answer(world) == ["answer to: Hi", "answer to: the price?"]
    assert states() == ["sent", "sent", "sent"]
