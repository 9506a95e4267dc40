"""The probe looks for every text of a long session, at a cost that doesn't grow with them."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.foundation.retrieval.fragments import MARK, Fragments
from sessions_app.conversations.conversation_message import ConversationMessage
from sessions_app.embedding.message_vectors import messages_embed
from sessions_app.forgetting.deletion_plan import DeletionPlan
from sessions_app.forgetting.execute import ForgetDependencies
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.forgetting.probe import MAX_PROBES, Prober, StillFoundError, spread
from sessions_app.models import ChatSession, ForgetReceipt, Message, OutboundPart, Turn
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
    world.rules.chat_memory.add_messages(
        conversation_id=session.pk,
        messages=[
            ConversationMessage(role=role, content=text, timestamp=now)
            for text in texts
            for role in ("user", "assistant")
        ],
    )
    messages_embed(session_id=session.pk, embedder=world.dependencies.embedder)
    world.say(CLIENT, "/reset")
    return session.pk


def forget(world: World, session_id: UUID) -> ForgetReceipt:
    dependencies = ForgetDependencies(world.dependencies.embedder, world.dependencies.chat_memory)
    return object_forget(kind="session", object_id=session_id, dependencies=dependencies)


def answer_later(world: World, text: str) -> Message:
    """An answer in the chat's next session that says this."""
    world.say(CLIENT, "And now?")
    answer = Message.objects.filter(role="assistant").latest("received_at")
    Message.objects.filter(pk=answer.pk).update(content=text)
    return answer


@pytest.mark.parametrize("number", [0, 138, 199])
def test_what_a_later_answer_retells_of_any_message_is_gone(world: World, number: int) -> None:
    session_id = told(world, FACTS)
    answer = answer_later(world, f"As you said. {FACTS[number]}. Good bye.")

    receipt = forget(world, session_id)

    answer.refresh_from_db()
    assert answer.content == f"As you said. {MARK} Good bye."
    assert receipt.probe == "absent"
    assert receipt.swept["sessions_app_message"] >= 401
    assert left_of([FACTS[number]]) == []


def all_swept(world: World) -> tuple[Prober, DeletionPlan, Fragments]:
    """Everything that was said in a session is gone. In the next one people say much like it,
    so that who asks for one text isn't shown whatever there is."""
    session_id = told(world, FACTS)
    chat = world.chat(CLIENT)
    since = timezone.now() - timedelta(minutes=5)
    prober = Prober(FACTS, world.dependencies.embedder)
    plan = DeletionPlan(texts=dict.fromkeys(FACTS), chats={chat.pk}, since=since)
    ChatSession.objects.get(pk=session_id).delete()
    world.say(CLIENT, "Good evening")
    alike = [
        ConversationMessage(role="user", content=fact(number), timestamp=timezone.now())
        for number in range(300, 340)
    ]
    session_id = world.session(CLIENT).pk
    world.rules.chat_memory.add_messages(conversation_id=session_id, messages=alike)
    return prober, plan, Fragments(FACTS)


@pytest.mark.parametrize("number", [3, 138])
def test_an_answer_that_was_overlooked_is_found_whichever_text_it_tells(
    world: World, number: int
) -> None:
    prober, plan, texts = all_swept(world)
    prober.probe_chats(plan=plan, texts=texts)
    answer = answer_later(world, f"You said that {FACTS[number]}, I think")
    with pytest.raises(StillFoundError, match=str(answer.pk)):
        prober.probe_chats(plan=plan, texts=texts)
    Message.objects.filter(pk=answer.pk).update(content=f"You said. {MARK} I think")
    prober.probe_chats(plan=plan, texts=texts)


def test_so_is_what_was_sent_and_what_was_summed_up(world: World) -> None:
    prober, plan, texts = all_swept(world)
    world.say(CLIENT, "And now?")
    part = OutboundPart.objects.filter(turn=Turn.objects.latest("id"))
    kept = part.get().content
    part.update(content=FACTS[138])
    with pytest.raises(StillFoundError, match="part"):
        prober.probe_chats(plan=plan, texts=texts)
    part.update(content=kept)
    world.summarizing(every=2)
    world.say(CLIENT, "Thank you")
    assert world.sum_up(CLIENT)
    session = world.session(CLIENT)
    session.summarizations.update(digest=f"They said that {FACTS[138]}")
    with pytest.raises(StillFoundError, match="summary"):
        prober.probe_chats(plan=plan, texts=texts)


def test_what_people_say_again_on_their_own_is_no_find(world: World) -> None:
    prober, plan, texts = all_swept(world)
    world.say(CLIENT, "And now?")
    message = Message.objects.filter(role="user").latest("received_at")
    Message.objects.filter(pk=message.pk).update(content=FACTS[5])
    prober.probe_chats(plan=plan, texts=texts)


def test_two_hundred_texts_cost_hardly_more_queries_than_twenty(world: World) -> None:
    counts = []
    prober, plan, _ = all_swept(world)
    for texts in (FACTS[:MAX_PROBES], FACTS):
        prober = Prober(texts, world.dependencies.embedder)
        with (
            CaptureQueriesContext(
                connection,
            ) as queries,
            transaction.atomic(),
        ):
            prober.probe_chats(plan=plan, texts=Fragments(texts))
        counts.append(len(queries))
    # Where nothing is found, nothing is read.
    assert counts[1] < 1.1 * counts[0]


def test_the_sample_is_taken_from_all_over() -> None:
    assert spread(range(5)) == [0, 1, 2, 3, 4]
    assert spread(range(200)) == list(range(0, 200, 10))
