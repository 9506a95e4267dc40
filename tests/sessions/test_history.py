"""What a prompt holds of the conversation: by turns, only what was said before, in budget."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sessions_app.models import ChatSession, Turn
from sessions_app.models.chats import Limits
from tests.world import CLIENT, GODFATHER, World, message_from

NO_PAUSE = timedelta(0)


def conversation(world: World, place: int = -1) -> list[str]:
    """What a prompt holds after its system text."""
    return [message.content for message in world.prompt(place)[1:]]


def test_a_burst_is_answered_in_order_and_each_prompt_holds_only_what_came_before(
    world: World,
) -> None:
    """EDGE-003: ten messages in a second."""
    questions = [f"question {number}" for number in range(10)]
    world.receive(*(message_from(CLIENT, text) for text in questions))
    stored = [(message.order_num, message.content) for message in world.messages(CLIENT)]
    assert stored == list(enumerate(questions, start=1))

    world.work()

    answers = [f"answer to: {question}" for question in questions]
    assert [sent.text for sent in world.provider.sent] == answers
    for number, question in enumerate(questions):
        before = [
            said for pair in zip(questions[:number], answers[:number], strict=True) for said in pair
        ]
        assert conversation(world, number) == [*before, question]
        roles = [message.role for message in world.prompt(number)[1:]]
        assert roles == ["user", "assistant"] * number + ["user"]


def test_the_owners_own_message_stands_where_it_was_written(world: World) -> None:
    world.with_rules(pause_after_reply=NO_PAUSE)
    world.say(CLIENT, "Is it ready?")
    world.receive(message_from(CLIENT, "Come at five", from_business=True))
    world.say(CLIENT, "See you then")
    assert conversation(world) == [
        "Is it ready?",
        "answer to: Is it ready?",
        "Come at five",
        "See you then",
    ]
    assert [message.role for message in world.prompt()[1:]] == [
        "user",
        "assistant",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize(("who", "limit"), [(CLIENT, 40), (GODFATHER, 80)])
def test_the_budget_of_the_role_is_filled_exactly(world: World, who: str, limit: int) -> None:
    """Each message has 10 tokens."""
    world.with_rules(pause_after_reply=NO_PAUSE)
    limits = Limits(client=40, godfather=80)
    world.with_chat_memory(limits=limits)
    for number in range(9):
        world.receive(message_from(who, f"message {number}".ljust(40, "."), from_business=True))

    world.say(who, "the question".ljust(40, "?"))

    said = conversation(world)
    assert len(said) == limit // 10
    assert said[0].startswith(f"message {9 - (limit // 10 - 1)}.")
    assert said[-1].startswith("the question")


def test_the_last_two_messages_stay_as_far_as_there_is_room(world: World) -> None:
    world.with_rules(pause_after_reply=NO_PAUSE)
    world.receive(message_from(CLIENT, "old", from_business=True))
    world.receive(message_from(CLIENT, "first " + "long " * 5_000 + "last", from_business=True))
    world.say(CLIENT, "begin " + "huge " * 10_000 + "end")
    before, question = conversation(world)
    assert before.startswith("first long")
    assert before.endswith("long last")
    assert question.startswith("begin huge")
    assert question.endswith("huge end")
    assert "characters are left out here" in before
    assert "characters are left out here" in question
    assert sum(len(message.content) // 4 for message in world.prompt()) <= 4_000
    # What is stored stays whole, and staff see that the model didn't read all of it.
    stored = [message.content for message in world.messages(CLIENT)]
    assert stored[2] == "begin " + "huge " * 10_000 + "end"
    assert Turn.objects.get().replay.left_out["messages_cut"] == 2


def test_history_max_messages_bounds_by_number(world: World) -> None:
    world.with_answer_rules(history_max_messages=3)
    for number in range(5):
        world.say(CLIENT, f"say {number}")
    assert conversation(world) == ["say 3", "answer to: say 3", "say 4"]


def test_max_context_tokens_bounds_the_whole_prompt(world: World) -> None:
    for number in range(8):
        world.say(CLIENT, f"say {number} ".ljust(200, "."))
    world.with_answer_rules(max_context_tokens=500)

    world.say(CLIENT, "and now?")

    assert sum(len(message.content) // 4 for message in world.prompt()) <= 500
    assert conversation(world)[-1] == "and now?"
    assert len(conversation(world)) > 2
    assert Turn.objects.latest("id").replay.left_out["messages_over_context"] > 0


def test_a_question_longer_than_the_context_is_cut(world: World) -> None:
    world.with_answer_rules(max_context_tokens=500)
    world.say(CLIENT, "before")
    world.say(CLIENT, "x" * 4_000)
    assert sum(len(message.content) // 4 for message in world.prompt()) <= 500
    question = conversation(world)[-1]
    assert question.startswith("xxx")
    assert question.endswith("xxx")
    # The rest of the room holds what was said before.
    assert conversation(world)[:-1] == ["before", "answer to: before"]


def test_what_left_the_window_is_recalled_with_its_score_and_not_twice(world: World) -> None:
    world.say(CLIENT, "My daughter Noa is allergic to peanuts")
    for number in range(16):
        world.say(CLIENT, f"filler {number} ".ljust(600, "."))
    assert ChatSession.objects.get().window_start > 2

    world.say(CLIENT, "What is Noa allergic to?")

    system, *said = [message.content for message in world.prompt()]
    assert "- (they wrote, " in system
    assert system.count("My daughter Noa is allergic to peanuts") >= 1
    assert "My daughter Noa is allergic to peanuts" not in said
    recalled = Turn.objects.latest("id").replay.recalled
    assert {hit["source"] for hit in recalled} == {"message"}
    world.say(CLIENT, "What is Noa allergic to, again?")
    contents = [hit["content"] for hit in Turn.objects.latest("id").replay.recalled]
    assert "What is Noa allergic to?" not in contents, "the window holds it already"
