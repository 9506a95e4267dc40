"""No prompt is longer than its role's limit and than what the model reads."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from memoryproject.foundation.integrations.context_limit import Overflow, SharedContextLimit
from memoryproject.foundation.integrations.llm.base import ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.text.characters import estimate_tokens
from sessions_app.models import AssistantProfile, Turn
from sessions_app.turns.prompt_budget import CUT_MARK
from tests.doubles.own_context_limit import OwnContextLimit
from tests.world import CLIENT, GODFATHER, World, message_from

QUESTION = "when is the delivery of the pallet invoice truck?"
FILLER = "The weather was fine and nobody said a word about it. "


def tokens_of(request: ChatRequest) -> int:
    return sum(estimate_tokens(message.content) for message in request.messages)


def requests(world: World) -> list[ChatRequest]:
    model = world.dependencies.chat_model
    assert isinstance(model, ScriptedChatModel)
    return model.requests


def model_that_reads(tokens: int, *, tells: bool = False) -> ScriptedChatModel:
    """A model whose server refuses what is longer, with or without the numbers."""

    def answer(request: ChatRequest) -> str:
        asked = tokens_of(request)
        if asked > tokens:
            told = Overflow(window=tokens, prompt=asked) if tells else Overflow()
            raise ChatModelError("too long", permanent=True, overflow=told)
        return f"read {asked}"

    return ScriptedChatModel(answer)


def brief_model() -> ScriptedChatModel:
    """A model whose answers add nothing to speak of to the conversation."""
    return ScriptedChatModel(lambda _request: "Noted.")


def with_model(world: World, model: ScriptedChatModel, **changes: object) -> None:
    world.use(chat_model=model, **changes)


def test_long_texts_do_not_make_a_question_expensive(world: World) -> None:
    """A client sends 8 texts of 60,000 characters, then 49 characters."""
    with_model(world, brief_model())
    for number in range(8):
        fact = f"The delivery of pallet {number}: the invoice truck comes on day {number}. "
        world.say(CLIENT, (FILLER * 550 + fact + FILLER * 600)[:60_000])
    world.say(CLIENT, QUESTION)
    assert [tokens_of(request) for request in requests(world)] == [
        pytest.approx(2_000, abs=2_000) for _ in range(9)
    ]
    replay = Turn.objects.latest("id").replay
    assert replay.left_out["recalled_cut"] > 0
    # Of a long text the passage around the match was sent, not its beginning.
    recalled = [line for line in world.prompt()[0].content.split("\n- (") if "wrote" in line]
    assert recalled
    assert all("invoice truck comes on day" in line for line in recalled)
    stored = [len(message.content) for message in world.messages(CLIENT)]
    assert stored.count(60_000) == 8


def test_answers_that_grow_do_not_make_prompts_grow(world: World) -> None:
    def repeat_everything(request: ChatRequest) -> str:
        return "\n".join(message.content for message in request.messages)

    with_model(world, ScriptedChatModel(repeat_everything))
    for number in range(8):
        world.say(CLIENT, f"What is new with order {number}? " + FILLER * 20)
    assert max(tokens_of(request) for request in requests(world)) <= 4_000


def test_memories_keep_a_part_of_a_full_prompt(world: World) -> None:
    for number in range(3):
        world.remember(CLIENT, f"The chairs of order {number} go to Herzl street {number}")
    for number in range(16):
        world.say(CLIENT, f"Say {number} ".ljust(600, "."))
    world.say(CLIENT, "Where do the chairs of order 1 go to?")
    system, *history = world.prompt()
    assert "go to Herzl street 1" in system.content
    assert len(history) > 10
    assert tokens_of(requests(world)[-1]) <= 4_000


def test_a_long_profile_leaves_room_for_the_conversation(world: World) -> None:
    AssistantProfile.objects.create(pk=1, business_facts="We sell chairs. " * 4_000, persona="Kind")
    world.say(CLIENT, "Hello")
    world.say(CLIENT, "How are you?")
    system, *history = world.prompt()
    assert [line.content for line in history] == ["Hello", "answer to: Hello", "How are you?"]
    assert "We sell chairs." in system.content
    assert "Kind" in system.content
    assert tokens_of(requests(world)[-1]) <= 4_000
    assert Turn.objects.latest("id").replay.left_out["profile_cut"] == 1


def test_hebrew_is_counted_as_what_it_costs(world: World) -> None:
    world.say(CLIENT, "המשלוח של הכיסאות יגיע מחר בבוקר למחסן. " * 1_000)
    (sent,) = requests(world)
    # In o200k_base Hebrew has about 2.3 characters a token.
    assert sum(len(message.content) for message in sent.messages) < 4_000 * 2.6
    assert tokens_of(sent) <= 4_000


def test_a_limit_that_is_too_small_for_anything_still_gives_an_answer(world: World) -> None:
    world.with_answer_rules(max_context_tokens=10)
    assert world.say(CLIENT, "Hello") == ["answer to: Hello"]
    assert world.say(CLIENT, FILLER * 100)[0].startswith("answer to: The weather")


@pytest.mark.parametrize("tells", [True, False])
def test_a_prompt_that_is_too_long_is_shortened_until_it_is_read(world: World, tells: bool) -> None:
    limit = OwnContextLimit()
    with_model(world, model_that_reads(3_000, tells=tells), context_limit=limit)
    world.with_rules(pause_after_reply=timedelta(0))
    for number in range(60):
        new = message_from(GODFATHER, f"Line {number}: " + FILLER * 10, from_business=True)
        world.receive(new)
    (reply,) = world.say(GODFATHER, "And now?")
    assert reply.startswith("read ")
    asked = [tokens_of(request) for request in requests(world)]
    assert asked == sorted(asked, reverse=True)
    assert 1_000 < asked[-1] <= 3_000
    assert len(asked) <= 4
    replay = Turn.objects.latest("id").replay
    assert replay.left_out["refused_prompts"] == len(asked) - 1
    assert replay.left_out["messages_over_context"] > 0
    # The next prompt is within the limit from the beginning.
    world.say(GODFATHER, "And then?")
    assert len(requests(world)) == len(asked) + 1
    assert tokens_of(requests(world)[-1]) <= 3_000
    assert Turn.objects.latest("id").replay.left_out["refused_prompts"] == 0


def test_other_workers_know_the_limit_too(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def limit() -> SharedContextLimit:
        return SharedContextLimit(base_url="http://127.0.0.1:1/v1", model="small-model")

    limit().learn(2_345)
    limit().learn(2_345)
    learned = limit().learned()
    assert learned is not None
    assert learned.tokens == 2_345
    other = SharedContextLimit(base_url="http://127.0.0.1:1/v1", model="another-model")
    assert other.learned() is None
    # Staff are told once, with what to do.
    told = [record.getMessage() for record in caplog.records if "small-model" in record.message]
    assert len(told) == 1
    assert "Set MAX_CONTEXT_TOKENS=2345" in told[0]
    with_model(world, model_that_reads(2_345), context_limit=limit())
    world.say(GODFATHER, FILLER * 1_000)
    assert len(requests(world)) == 1


def test_a_prompt_that_cannot_be_shortened_is_not_sent_again(world: World) -> None:
    limit = OwnContextLimit()
    with_model(world, model_that_reads(10), context_limit=limit)
    (reply,) = world.say(CLIENT, "Hello")
    assert reply.startswith("Sorry, I can't answer right now.")
    assert len(requests(world)) == 1
    question = Turn.objects.get(message__isnull=False)
    assert question.state == "failed"
    assert "too long" in question.error
    assert limit.learned() is None, "no shorter prompt was accepted"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(lambda: "x" * 60_000, id="no spaces"),
        pytest.param(lambda: "\n" * 59_000 + "x", id="almost empty"),
        pytest.param(lambda: "👩‍👩‍👧‍👦" * 8_000, id="joined emoji"),
        pytest.param(lambda: "שָׁלוֹם " * 7_000, id="niqqud"),
        pytest.param(lambda: "漢字" * 30_000, id="no word ends"),
        pytest.param(lambda: CUT_MARK * 1_000, id="marks of our own"),
    ],
)
def test_any_long_text_is_cut_to_its_room(world: World, text: Callable[[], str]) -> None:
    with_model(world, brief_model())
    world.say(CLIENT, text())
    world.say(CLIENT, text())
    world.say(CLIENT, "What did I say?")
    assert max(tokens_of(request) for request in requests(world)) <= 4_000
