"""The probe looks for every text of a long session, at a cost that doesn't grow with them."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.foundation.retrieval.fragments import MARK
from sessions_app.conversations.message_store import NewMessage
from sessions_app.embedding.message_vectors import messages_embed
from sessions_app.forgetting.deletion_plan import MAX_TEXTS
from sessions_app.forgetting.probe import MAX_PROBES
from sessions_app.models import Message, Turn, TurnReplay
from tests.forgetting.dump import left_of
from tests.world import CLIENT, World

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("new_connection_after"),
]

SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru")


def fact(number: int) -> str:
    """A text that shares no four words in a row with another one."""
    word = "".join(SYLLABLES[int(digit)] for digit in f"{number:03d}")
    return f"Parcel {word} lies behind shelf {word} of {word} hall"


FACTS = [fact(number) for number in range(200)]


def told(world: World, texts: list[str]) -> UUID:
    """A session in which these were said and answered."""
    world.say(CLIENT, "Good morning")
    session = world.session(CLIENT)
    now = timezone.now()
    messages = [
        NewMessage(role=role, content=text, timestamp=now)
        for text in texts
        for role in ("user", "assistant")
    ]
    for start in range(0, len(messages), 1_000):
        world.rules.chat_memory.add_messages(
            conversation_id=session.pk, messages=messages[start : start + 1_000]
        )
    messages_embed(session_id=session.pk, embedder=world.dependencies.embedder)
    world.say(CLIENT, "/reset")
    return session.pk


def answer_later(world: World, number: int, text: str) -> Message:
    """An answer in the chat's next session that was given one of the facts and says this."""
    said = Message.objects.get(content=FACTS[number], role="user")
    world.say(CLIENT, "And now?")
    turn = Turn.objects.latest("id")
    recalled = [{"source": "message", "id": str(said.pk), "role": "user", "content": said.content}]
    TurnReplay.objects.filter(turn=turn).update(recalled=recalled)
    Message.objects.filter(pk=turn.reply_id).update(content=text)
    return Message.objects.get(pk=turn.reply_id)


@pytest.mark.parametrize("number", [0, 138, 199])
def test_what_a_later_answer_retells_of_any_message_is_gone(world: World, number: int) -> None:
    session_id = told(world, FACTS)
    answer = answer_later(world, number, f"As you said. {FACTS[number]}. Good bye.")

    receipt = world.forget("session", session_id)

    answer.refresh_from_db()
    assert answer.content == f"As you said. {MARK} Good bye."
    assert (receipt.probe, receipt.left) == ("absent", [])
    assert receipt.swept["sessions_app_message"] >= 401
    assert left_of([FACTS[number]]) == []


def test_more_texts_than_are_searched_are_cut_where_they_were_given(world: World) -> None:
    session_id = told(world, [*FACTS, *(f"Nothing new {number}" for number in range(900))])
    answer = answer_later(world, 138, f"As you said. {FACTS[138]}. Good bye.")
    receipt = world.forget("session", session_id)
    answer.refresh_from_db()
    assert answer.content == f"As you said. {MARK} Good bye."
    assert receipt.swept["sessions_app_message"] > MAX_TEXTS


def test_two_hundred_texts_cost_hardly_more_queries_than_twenty(world: World) -> None:
    """Nor do the answers that were given none of them."""
    counts = []
    for texts in (FACTS[:MAX_PROBES], FACTS):
        session_id = told(world, texts)
        with CaptureQueriesContext(connection) as queries:
            world.forget("session", session_id)
        counts.append(len(queries))
    assert counts[1] < 1.1 * counts[0]
