"""What was said is recalled however often it was asked for."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any
from uuid import uuid4

import pytest

from memoryproject.foundation.integrations.llm.base import OfflineChatModel
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.events import Party
from memoryproject.foundation.retrieval.message_features import DistinctTexts
from memoryproject.foundation.retrieval.subqueries import knows_nothing
from sessions_app.embedding.message_vectors import messages_embed
from sessions_app.models import Turn
from sessions_app.recall.facade import Hit, Viewer, recall
from sessions_app.recall.hits import behind
from tests.tables import table
from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.usefixtures("default_embedder")

FACTS = [
    "The chairs should be delivered to Herzl street 5 in Haifa",
    "Call the guard at the gate before the chairs are delivered",
    "The delivery address has changed: the second floor, not the first",
    "The chairs cost 4,000 shekels without the delivery",
    "Deliver on Mondays only, the address is closed on other days",
]
QUESTION = "Which address should the chairs be delivered to?"


def end_session(world: World) -> None:
    messages_embed(session_id=world.session(CLIENT).pk, embedder=world.dependencies.embedder)
    world.say(CLIENT, "/reset")


def facts_of(texts: list[str]) -> list[str]:
    return [text for text in texts if text in FACTS]


def recalled(world: World) -> list[str]:
    return [entry["content"] for entry in Turn.objects.latest("id").replay.recalled]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda request: f"echo: {request.messages[-1].content}", id="it repeats"),
        pytest.param(lambda request: "I will ask the driver.", id="it says the same each time"),
    ],
)
def test_asking_again_and_again_still_recalls_the_facts(world: World, answer: object) -> None:
    model = ScriptedChatModel(answer)  # type: ignore[arg-type]
    world.use(chat_model=model)
    for fact in FACTS:
        world.say(CLIENT, fact)
    end_session(world)
    found = []
    for number in range(4):
        asked = QUESTION if number % 2 else QUESTION.lower().replace("?", " ??")
        world.say(CLIENT, asked)
        found.append(recalled(world))
        end_session(world)
    for texts in found:
        assert not any("which address" in text.lower() for text in texts)
        # Each text stands there once.
        assert len({text.removeprefix("echo: ") for text in texts}) == len(texts)
        # No fact is pushed out: the last time finds what the first time found.
        assert set(facts_of(texts)) >= set(facts_of(found[0]))
    assert facts_of(found[0])


def test_without_a_model_the_person_is_not_told_their_own_question(world: World) -> None:
    for fact in FACTS:
        world.say(CLIENT, fact)
    for _ in range(3):
        end_session(world)
        world.say(CLIENT, QUESTION)
    end_session(world)
    world.use(chat_model=OfflineChatModel())
    (reply,) = world.say(CLIENT, QUESTION)
    assert FACTS[2] in reply
    assert QUESTION not in reply


def test_without_a_model_a_question_is_told_with_its_answer_or_not_at_all(world: World) -> None:
    model = ScriptedChatModel(lambda request: "Dark green, as you said.")
    world.use(chat_model=model)
    world.say(CLIENT, "What colour should the sofa be?")
    end_session(world)
    world.use(chat_model=OfflineChatModel())
    world.say(CLIENT, "Can the sofa be repaired?")
    end_session(world)
    (reply,) = world.say(CLIENT, "Which colour should the sofa be?")
    assert reply.splitlines()[1:] == ["• What colour should the sofa be? Dark green, as you said."]


def test_without_a_model_a_long_text_is_told_by_the_passage_that_fits(world: World) -> None:
    model = ScriptedChatModel(lambda request: "Thanks.")
    world.use(chat_model=model)
    before = "We met on Tuesday and talked about the plan for the summer and the new kitchen. " * 30
    world.say(CLIENT, f"{before}The alarm code of the warehouse is 8842. {before}")
    end_session(world)
    world.use(chat_model=OfflineChatModel())
    (reply,) = world.say(CLIENT, "What is the alarm code of the warehouse?")
    assert "The alarm code of the warehouse is 8842." in reply


def test_the_answer_that_was_given_then_is_kept(world: World) -> None:
    model = ScriptedChatModel(lambda request: "To Herzl street 5, as agreed.")
    world.use(chat_model=model)
    for _ in range(3):
        world.say(CLIENT, QUESTION)
        end_session(world)
    world.say(CLIENT, QUESTION.lower())
    assert recalled(world) == ["To Herzl street 5, as agreed."]


@pytest.mark.parametrize("nothing", ["Let me check with the driver.", "אני לא יודע"])
def test_an_answer_that_knew_nothing_takes_no_place(world: World, nothing: str) -> None:
    answers = iter(["To Herzl street 5, as agreed.", nothing, nothing])
    model = ScriptedChatModel(lambda request: next(answers))
    world.use(chat_model=model)
    for _ in range(2):
        world.say(CLIENT, QUESTION)
        end_session(world)
    world.say(CLIENT, QUESTION)
    assert recalled(world)[0] == "To Herzl street 5, as agreed."


def test_the_answer_to_another_question_is_not_taken_for_it(world: World) -> None:
    model = ScriptedChatModel(lambda request: "To the warehouse in Lod.")
    world.use(chat_model=model)
    for _ in range(2):
        world.say(CLIENT, QUESTION.replace("chairs", "tables"))
        end_session(world)
    world.say(CLIENT, FACTS[0])
    end_session(world)
    world.say(CLIENT, QUESTION)
    assert FACTS[0] in recalled(world)
    assert "To the warehouse in Lod." not in recalled(world)


def test_a_question_in_other_words_is_a_repetition_too(world: World) -> None:
    model = ScriptedChatModel(lambda request: "I will ask the driver.")
    world.use(chat_model=model)
    world.say(CLIENT, FACTS[0])
    for asked in ("Please remind me, which", "Can you please tell me which", "Hey, which"):
        end_session(world)
        world.say(CLIENT, f"{asked} address the chairs should be delivered to?")
    for asked_again in (QUESTION, f"Could you please remind me once more: {QUESTION.lower()}"):
        end_session(world)
        world.say(CLIENT, asked_again)
        assert not [text for text in recalled(world) if "address" in text]
        assert FACTS[0] in recalled(world)


def test_who_looks_for_what_to_forget_finds_every_copy(world: World) -> None:
    for _ in range(3):
        world.say(CLIENT, QUESTION)
        end_session(world)
    values: dict[str, Any] = {
        "query": QUESTION,
        "viewer": Viewer("client", world.chat(CLIENT).pk),
        "embedder": world.dependencies.embedder,
    }
    assert [hit.content for hit in recall(**values, repeats=True).hits].count(QUESTION) == 3
    assert QUESTION not in [hit.content for hit in recall(**values).hits]


def test_the_same_words_of_two_people_are_two_texts(world: World) -> None:
    group = "120363000000000001"
    for phone, name in (("15550100123", "Dana"), ("15550100456", "Omer")):
        party = Party(phone=phone, name=name)
        world.receive(message_from(CLIENT, "I am allergic to walnuts", party=party, group_id=group))
    world.work()
    found = recall(
        query="Who is allergic to walnuts?",
        min_similarity=0.1,
        viewer=Viewer("client", world.chat(f"{group}@g.us").pk),
        embedder=world.dependencies.embedder,
    )
    assert [hit.content for hit in found.hits] == ["I am allergic to walnuts"] * 2


@table(
    ("before", "text"),
    [
        ("The order is ready", "The order is not ready"),
        ("Order 17 is for 5 chairs", "Order 18 is for 5 chairs"),
        ("Dana owes Omer 5", "Omer owes Dana 5"),
        ("The invoices go to Liora", "The invoices go to Noa"),
        ("Dana: at five", "Omer: at five"),
        ("At five", "No: at five"),
        ("It is ready", "It is ready tomorrow"),
        ("a" * 5_000 + " one", "a" * 5_000 + " other"),
    ],
)
def test_texts_that_differ_in_what_counts_are_both_new(before: str, text: str) -> None:
    distinct = DistinctTexts(QUESTION)
    assert distinct.is_new(before)
    assert distinct.is_new(text)
    assert not distinct.repeats_query(text)


@pytest.mark.parametrize(
    "text", ["the ORDER is ready!", "The order is ready", "Echo: the order is ready."]
)
def test_copies_are_not_new(text: str) -> None:
    distinct = DistinctTexts()
    assert distinct.is_new("The order is ready.")
    assert not distinct.is_new(text)


@table("text", ["We don't have bread without gluten", "לא, ב-9", "Not on Mondays", "No", ""])
def test_a_negative_answer_says_something(text: str) -> None:
    assert not knows_nothing(text)


@table("piece", ["x", " ", "\n", "x ", ":", "x: ", "?", "what ", ", and what "])
def test_long_texts_are_compared_in_linear_time(piece: str) -> None:
    distinct = DistinctTexts(QUESTION)
    assert not distinct.repeats_query(piece * 60_000 + "one")
    assert distinct.is_new(piece * 60_000 + "one")
    assert distinct.is_new(piece * 60_000 + "other one")


@table(
    ("query", "text", "new"),
    [
        ("What does Dana owe?", "what does dana owe", False),
        ("What does Dana owe?", "Please, what does Dana owe?", False),
        ("What does order 17 cost?", "What does order 18 cost?", True),
        ("Does TestCorp owe 5,000?", "TestCorp does owe 5,000", True),
        (QUESTION, f"Please remind me, {QUESTION.lower()}", False),
        (QUESTION, "Can you tell me which address the chairs should be delivered to?", False),
        (QUESTION, QUESTION.replace("chairs", "tables"), True),
        (QUESTION, QUESTION.replace("Which address", "When"), True),
        (QUESTION, f"I asked Omer. {QUESTION}", True),
        ("And you?", "and you ?", False),
        ("¿A qué hora abren?", "a que hora abren", False),
        ("Wann öffnen Sie?", "Wann öffnen Sie", False),
        ("À quelle heure ouvrez-vous ?", "à quelle heure ouvrez-vous", False),
        ("Когда вы открываетесь?", "когда вы открываетесь", False),
        ("متى تفتحون؟", "متى تفتحون", False),
        ("إلى أين التوصيل؟", "إلى أين التوصيل", False),
        ("你们几点开门？", "你们几点开门", False),
        ("¿Abren a las nueve?", "Abren a las nueve", True),
        ("מה הסטטוס של ההזמנה?", "מה הסטטוס של ההזמנה", False),
        ("מה הסטטוס של ההזמנה?", "הסטטוס של ההזמנה: נשלחה", True),
    ],
)
def test_only_the_same_question_repeats_the_query(query: str, text: str, new: bool) -> None:
    assert DistinctTexts(query).repeats_query(text) is not new


def found(source: str, content: str, score: float, role: str = "") -> Hit:
    at = datetime(2026, 11, 30, tzinfo=timezone.utc)
    return Hit(source, uuid4(), content, score, None, at, {"role": role})


@table(
    ("is_named", "least", "order"),
    [
        # What only asks stands behind memories that answer,
        (False, 0.7, ["answer", "fact", "question"]),
        # where somebody is named so does what was answered before,
        (True, 0.7, ["fact", "question", "answer"]),
        # and where no memory answers, nothing moves.
        (True, 0.9, ["question", "answer", "fact"]),
    ],
)
def test_what_asks_stands_behind_memories_that_answer(
    is_named: bool, least: float, order: list[str]
) -> None:
    texts = {
        "What may Marta not eat?": "question",
        "Marta ordered a lamp.": "answer",
        "I'm allergic to nuts": "fact",
    }
    hits = [
        found("message", "What may Marta not eat?", 0.99, "user"),
        found("message", "Marta ordered a lamp.", 0.95, "assistant"),
        found("memory", "I'm allergic to nuts", 0.8),
    ]

    ranked = sorted(behind(hits, least, is_named=is_named), key=lambda hit: -hit.score)

    assert [texts[hit.content] for hit in ranked] == order
