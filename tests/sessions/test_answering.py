"""The program that answers: which turn each of its threads takes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F
from django.utils import timezone

from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.integrations.llm.base import ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.models import Turn
from sessions_app.turns.queue import QUICK_LOOK, QUICK_THREADS, Answerer, heartbeats
from sessions_app.turns.turn_dependencies import Dependencies
from tests.processes.waiting import wait_until
from tests.threads import begin
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db


def answerer_of(world: World, **changes: Any) -> Answerer:
    """One whose threads don't run: tests call ``answer_next``."""
    given: dict[str, Any] = {
        "threads": 1,
        "godfather": lambda: {GODFATHER},
        "dependencies": lambda: world.dependencies,
        "embed": lambda _session: None,
        "tend": lambda: None,
    }
    return Answerer(**{**given, **changes})


def sent(world: World) -> list[str]:
    return [each.text for each in world.provider.sent]


def test_it_answers_the_longest_waiting_chat_one_turn_at_a_time(world: World) -> None:
    world.receive(message_from(CLIENT, "one"), message_from(CLIENT, "two"))
    world.receive(message_from(OTHER_CLIENT, "three"))
    answerer = answerer_of(world)
    assert [answerer.answer_next() for _ in range(4)] == [True, True, True, False]
    assert sent(world) == ["answer to: one", "answer to: two", "answer to: three"]


def test_a_thread_for_what_is_quick_leaves_what_needs_a_model(world: World) -> None:
    world.receive(message_from(CLIENT, "a question"), message_from(CLIENT, "/help"))
    world.receive(message_from(OTHER_CLIENT, "  /help"))
    embedded: list[UUID] = []
    answerer = answerer_of(world, embed=embedded.append)
    assert answerer.answer_next(is_quick=True)
    assert not answerer.answer_next(is_quick=True)
    assert [turn.chat.whatsapp_chat for turn in Turn.objects.filter(state="sent")] == [OTHER_CLIENT]
    assert embedded == [world.session(OTHER_CLIENT).pk]
    assert answerer.answer_next()
    assert answerer.answer_next(is_quick=True), "the command behind the question is the next turn"


@pytest.mark.parametrize("text", ["", "  ", "/help", "forget my shoe size", "what about my shoes?"])
def test_every_text_that_needs_no_model_is_found(world: World, text: str) -> None:
    """Also a command in plain words."""
    world.receive(message_from(CLIENT, text))
    is_quick = text != "what about my shoes?"
    assert answerer_of(world).answer_next(is_quick=True) is is_quick


def older(seconds: float) -> None:
    """Let all that waits be so much older, instead of waiting."""
    Turn.objects.update(created_at=F("created_at") - timedelta(seconds=seconds))


def while_the_model_is_asked(world: World, *, waited: float, text: str = "/help") -> list[str]:
    """What is sent in the chat while the model gives no answer to a question that came so long ago,
    after which a command came, and at last."""
    answerer, meanwhile = answerer_of(world), []

    def away(_request: ChatRequest) -> str:
        while answerer.answer_next(is_quick=True):
            meanwhile.append(sent(world)[-1])
        raise ChatModelError("connection refused", is_outside=True)

    world.use(chat_model=ScriptedChatModel(away))
    world.receive(message_from(CLIENT, "a question"))
    older(waited)
    world.receive(message_from(CLIENT, text), message_from(CLIENT, "/memories"))
    assert answerer.answer_next()
    return [each.partition("\n")[0] for each in meanwhile]


def test_a_command_does_not_wait_for_a_model_that_is_away(world: World) -> None:
    meanwhile = while_the_model_is_asked(world, waited=11)
    assert meanwhile == [
        "You can simply write to me. I also know these commands:",
        "I don't remember anything yet. Tell me something with /remember <fact>.",
    ], "in their order"
    assert [turn.state for turn in Turn.objects.order_by("id")] == [
        "deferred",
        "sent",
        "sent",
        "sent",
    ], "the question is kept, and its apology sent"
    assert sent(world)[-1].startswith("Sorry, I can't answer right now.")


def test_a_command_keeps_its_place_behind_a_question_that_has_just_come(world: World) -> None:
    assert while_the_model_is_asked(world, waited=9) == []


def test_a_command_goes_before_a_question_that_waits_for_its_next_try(world: World) -> None:
    world.receive(message_from(CLIENT, "a question"))
    Turn.objects.update(not_before=timezone.now() + timedelta(minutes=1))
    older(11)
    world.receive(message_from(CLIENT, "/help"), message_from(CLIENT, "and another one"))
    world.work()
    assert [text.partition(".")[0] for text in sent(world)] == ["You can simply write to me"]
    Turn.objects.update(not_before=None)
    world.work()
    assert sent(world)[1:] == ["answer to: a question", "answer to: and another one"]


def test_what_a_command_forgets_is_not_in_the_answer_before_it(world: World) -> None:
    world.remember(CLIENT, "the gate opens with Tulip")
    world.receive(message_from(CLIENT, "how does the gate open?"))
    older(11)
    world.receive(message_from(CLIENT, "/forget gate"))
    answerer = answerer_of(world)

    def slow(request: ChatRequest) -> str:
        answerer.answer_next(is_quick=True)
        return f"it knows {'Tulip' in str(request.messages)}"

    world.use(chat_model=ScriptedChatModel(slow))
    assert answerer.answer_next()
    assert "Forgotten" in sent(world)[1]
    assert sent(world)[2:] == ["it knows False"]


def test_no_embedder_holds_up_the_next_message_of_its_chat(world: World) -> None:
    world.receive(message_from(CLIENT, "one"), message_from(CLIENT, "two"))
    answerer = answerer_of(world)

    class Slow(WordLlamaEmbedder):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            if "answer to: one" in texts and len(sent(world)) == 1:
                assert answerer.answer_next()
            return super().embed(texts)

    world.use(embedder=Slow())
    assert answerer.answer_next()
    assert sent(world) == ["answer to: one", "answer to: two"]


def test_commands_behind_questions_hide_no_other_command(world: World) -> None:
    for number in range(QUICK_LOOK + 1):
        chat = f"155503{number:05}@c.us"
        world.receive(message_from(chat, "a question"), message_from(chat, "/help"))
    world.receive(message_from(CLIENT, "/help"))
    assert answerer_of(world).answer_next(is_quick=True)
    assert Turn.objects.get(state="sent").chat == world.chat(CLIENT)


def test_a_chat_that_cannot_be_answered_holds_up_no_other(world: World) -> None:
    """Here the first one's time is put off between the look and the claim."""
    world.receive(message_from(CLIENT, "one"), message_from(OTHER_CLIENT, "two"))
    first = Turn.objects.filter(pk=Turn.objects.earliest("id").pk)

    def put_off() -> Dependencies:
        first.update(not_before=timezone.now() + timedelta(minutes=1))
        return world.dependencies

    answerer = answerer_of(world, dependencies=put_off)
    assert not answerer.answer_next()
    first.update(not_before=None)
    assert answerer.answer_next()
    assert sent(world) == ["answer to: two"], "the other is tried again after a moment"


@pytest.mark.django_db(transaction=True)
def test_a_chat_is_looked_at_again_although_nothing_else_happens(world: World) -> None:
    faults = [RuntimeError("at the first try")]

    def dependencies() -> Dependencies:
        if faults:
            raise faults.pop()
        return world.dependencies

    world.receive(message_from(CLIENT, "one"))
    answerer = answerer_of(world, dependencies=dependencies)
    running = begin(answerer.run)
    try:
        wait_until(lambda: sent(world), "the answer", seconds=30.0)
    finally:
        answerer.stop()
        running.result()
    assert sent(world) == ["answer to: one"]


def test_only_young_heartbeats_count(world: World) -> None:
    answerer_of(world).beat()
    now = timezone.now()
    (beat,) = heartbeats(now)
    assert (beat.threads, beat.busy) == (1 + QUICK_THREADS, 0)
    assert heartbeats(now + timedelta(minutes=1)) == []
