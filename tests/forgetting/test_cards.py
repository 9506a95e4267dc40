"""After forgetting, no card and no prompt that held one tells of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from cards_app.models import MemoryCard
from memories_app.models import Memory
from sessions_app.history.clear_session import sessions_expire
from sessions_app.models import ChatSession, ForgetReceipt, Message
from tests.cards.making import make_due
from tests.forgetting.dump import left_of
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db(transaction=True)

SAID = "Please remember to bring Quetzal feathers and umbrellas to Wolmirstedt"
# What a card alone has of it: a keyword, a title that is cut.
OF_THE_CARD = ["quetzal", "feathers", "Quetzal", "Please remember to bring"]
OTHER = "The dentist appointment of Liora is on Thursday at nine"


@pytest.fixture
def world(world: World) -> World:
    """A card stands in each prompt."""
    world.with_answer_rules(cards_in_prompt=2)
    return world


def told_in_an_earlier_session(world: World) -> ChatSession:
    """It was said in a session that has ended, and its card stood in the prompt since."""
    world.say(CLIENT, OTHER)
    world.say(CLIENT, SAID)
    session = world.session(CLIENT)
    ChatSession.objects.filter(pk=session.pk).update(
        last_active=timezone.now() - timedelta(hours=30)
    )
    sessions_expire(now=timezone.now(), timeout=timedelta(hours=24))
    make_due()
    world.say(CLIENT, "Hello again")
    assert "quetzal" in world.prompt()[0].content
    assert len(left_of([], OF_THE_CARD)) == 4, "the test must find it before it is forgotten"
    return session


def forgotten(world: World, kind: str, session: ChatSession) -> ForgetReceipt:
    keys = {"session": session.pk, "chat": session.chat_id}
    keys["message"] = Message.objects.get(content=SAID).pk
    return world.forget(kind, keys[kind])


@pytest.mark.parametrize("kind", ["message", "session", "chat"])
def test_cards_and_prompts_that_held_them_are_swept(world: World, kind: str) -> None:
    session = told_in_an_earlier_session(world)
    receipt = forgotten(world, kind, session)
    assert receipt.swept["cards_app_memorycard"] >= 1
    assert left_of([SAID], OF_THE_CARD) == []
    make_due()
    assert left_of([SAID], OF_THE_CARD) == []


def test_the_card_is_made_again_of_what_is_left(world: World) -> None:
    session = told_in_an_earlier_session(world)
    forgotten(world, "message", session)
    make_due()
    assert MemoryCard.objects.get(pk=session.pk).title == OTHER


def test_an_answer_that_retold_a_memory_leaves_the_card(world: World) -> None:
    world.remember(CLIENT, SAID)
    told_in_an_earlier_session(world)
    memory = Memory.objects.get()
    # What the client says on his own stays; the answers that were given it and repeat it don't.
    answers = Message.objects.filter(role="assistant", content__contains=SAID)
    assert answers.exists()
    receipt = world.forget("memory", memory.pk)
    assert receipt.swept["cards_app_memorycard"] == 1
    assert not MemoryCard.objects.exists()
    assert not answers.exists()
