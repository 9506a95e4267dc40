"""An answer that fails says so: to the person at once, to staff with its error, and to no model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db import OperationalError, transaction

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.llm.base import (
    ChatModelError,
    ChatRequest,
    Completion,
    OfflineChatModel,
)
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.history.strategies import NoStrategy
from sessions_app.limits.intake import UsageLimits
from sessions_app.models import Turn
from sessions_app.models.turns import APOLOGY_FOR
from tests.world import CLIENT, GODFATHER, World, message_from, remember

pytestmark = pytest.mark.django_db
APOLOGY = "Sorry, I can't answer right now. Please try again in a few minutes."

Script = Callable[[ChatRequest], str | Completion]


def use_model(world: World, script: Script) -> ScriptedChatModel:
    model = ScriptedChatModel(script)
    world.dependencies = replace(world.dependencies, chat_model=model)
    return model


def question() -> Turn:
    """The turn of the question, not that of the apology for it."""
    return Turn.objects.exclude(context__has_key=APOLOGY_FOR).get()


def out_of_order(_: ChatRequest) -> str:
    raise ChatModelError(ErrorText("model_unreachable"))


@pytest.mark.parametrize(
    "answer",
    [
        Completion(text="a\x00b", model="m"),
        Completion(text="a\ud83db", model="m"),
        Completion(text="fine", model="m" * 300),
    ],
)
def test_an_answer_that_cant_be_stored_is_an_apology(world: World, answer: Completion) -> None:
    use_model(world, lambda _: answer)
    assert world.say(CLIENT, "hello") == [APOLOGY]
    turn = question()
    assert (turn.state, turn.outcome, turn.error_code) == ("failed", "failed", "answer_fault")
    assert "could not be made or stored" in turn.error
    assert world.say(CLIENT, "/help") != [APOLOGY]


@pytest.mark.parametrize("fault", [ZeroDivisionError, KeyError, RecursionError, OSError, Exception])
def test_a_fault_of_any_class_is_an_apology(world: World, fault: type[Exception]) -> None:
    def breaks(_: ChatRequest) -> str:
        raise fault("what broke")

    model = use_model(world, breaks)
    assert world.say(CLIENT, "hello") == [APOLOGY]
    turn = question()
    assert (turn.state, turn.outcome, turn.error_code) == ("failed", "failed", "answer_fault")
    assert fault.__name__ in turn.error
    assert len(model.requests) == 2


def test_a_second_try_may_help(world: World) -> None:
    answers: Iterator[str | Completion] = iter(
        [Completion(text="a\x00b", model="m"), "We open at 9."]
    )
    use_model(world, lambda _: next(answers))
    assert world.say(CLIENT, "hello") == ["We open at 9."]
    turn = Turn.objects.get()
    assert (turn.outcome, turn.error_code) == ("answered", None)


def test_a_turn_that_each_worker_left_says_so(world: World) -> None:
    """Workers that die leave no error."""
    world.receive(message_from(CLIENT, "hello"))
    Turn.objects.update(attempts=3)
    world.work()
    turn = question()
    assert (turn.state, turn.outcome, turn.error_code) == ("failed", "failed", "answer_cut_off")


def test_an_answer_made_of_memories_is_told_from_an_apology(world: World) -> None:
    remember(world, "Parking is behind the house")
    use_model(world, out_of_order)
    world.say(CLIENT, "Where is the parking, is it behind the house?")
    world.say(CLIENT, "Who sells umbrellas?")
    told = [(turn.state, turn.outcome, turn.error_code) for turn in Turn.objects.order_by("id")]
    assert told == [
        ("sent", "from_memory", "model_unreachable"),
        # What was sent is the apology.
        ("failed", "failed", "model_unreachable"),
        ("sent", "failed", "model_unreachable"),
    ]


def test_without_a_model_each_answer_is_from_memory(world: World) -> None:
    world.dependencies = replace(world.dependencies, chat_model=OfflineChatModel())
    world.say(CLIENT, "Who sells umbrellas?")
    turn = Turn.objects.get()
    assert (turn.outcome, turn.error_code) == ("from_memory", None)


def test_what_a_limit_forbids_is_refused(world: World) -> None:
    limits = UsageLimits(model_calls_per_day=1)
    world.dependencies = replace(world.dependencies, limits=limits)
    world.say(CLIENT, "one")
    world.say(CLIENT, "two")
    world.say(CLIENT, "three")
    told = [(turn.outcome, turn.error_code) for turn in Turn.objects.order_by("id")]
    assert told == [
        ("answered", None),
        ("refused", "limit_model_calls"),
        ("refused", "limit_model_calls"),
    ]


def test_what_needs_memory_is_refused_without_it(world: World) -> None:
    world.with_rules(memory_enabled=False)
    world.say(GODFATHER, "/remember the code is 4711")
    assert Turn.objects.get().outcome == "refused"


def test_an_apology_stands_in_no_later_prompt_and_no_summary(world: World) -> None:
    use_model(world, out_of_order)
    world.say(CLIENT, "When do you open?")
    seen = use_model(world, lambda _: "We open at 9.")
    world.say(CLIENT, "Hello?")
    said = [(each.role, each.content) for each in seen.requests[-1].messages[1:]]
    assert ("user", "When do you open?") in said
    assert not any(APOLOGY in content for _role, content in said)
    world.summarizing(every=4)
    world.sum_up(CLIENT)
    assert not any(APOLOGY in each.content for each in seen.requests[-1].messages)


class LosesTheWord(NoStrategy):
    """The first commit of an answer succeeds, and the database's word of it gets lost."""

    lost = 0

    @property
    def post_add_messages_hook(self) -> Any:
        def lose() -> None:
            raise OperationalError("server closed the connection unexpectedly")

        LosesTheWord.lost += 1
        if LosesTheWord.lost == 1:
            transaction.on_commit(lose)
        return lambda **_: None


@pytest.mark.django_db(transaction=True)
def test_an_answer_that_was_stored_after_all_is_sent(world: World) -> None:
    LosesTheWord.lost = 0
    chat_memory = replace(world.dependencies.chat_memory, strategy=LosesTheWord())
    world.use(chat_memory=chat_memory)
    assert world.say(CLIENT, "Are you open?") == ["answer to: Are you open?"]
    turn = Turn.objects.get()
    assert (turn.state, turn.error, LosesTheWord.lost) == ("sent", "", 1)
