"""A forgetting disturbs those who could have read what is forgotten, and nobody else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError, connection, transaction

from memories_app.models import Memory
from memories_app.store.change import memory_set_visibility
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.conversations.epochs import (
    PUBLIC,
    Reader,
    Scopes,
    chat_scope,
    forgetting_begin,
    forgetting_wait,
)
from sessions_app.forgetting.deletion_plan import NothingToForgetError
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.models import ForgetReceipt, Message, Turn
from tests.forgetting.dump import left_of
from tests.forgetting.forgetting_tools import dependencies_of
from tests.threads import at_once, elsewhere
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("new_connection_after"),
]

FACTS = (
    "The locker of the pool opens with the code of the old tram",
    "Liora gets a discount of eleven percent on garden chairs",
    "The baker is paid in forty small coins every second Monday",
)


def forget(world: World, fact: str) -> None:
    key = Memory.objects.get(content=fact).pk
    world.forget("memory", key)


def while_answering(world: World, *happenings: Callable[[], Any]) -> list[int]:
    """Let these happen one after the other, one while each draft of an answer is composed; the
    list holds a number for each draft."""
    drafts: list[int] = []
    waiting = list(happenings)

    def answer(_request: Any) -> str:
        drafts.append(len(drafts) + 1)
        if waiting:
            elsewhere(waiting.pop(0))
        return f"Draft {len(drafts)}"

    world.use(chat_model=ScriptedChatModel(answer))
    return drafts


def test_forgettings_in_another_chat_cost_an_answer_nothing(world: World) -> None:
    for fact in FACTS:
        world.remember(OTHER_CLIENT, fact)

    def forget_all() -> None:
        for fact in FACTS:
            forget(world, fact)

    drafts = while_answering(world, forget_all)
    assert world.say(CLIENT, "Hello there") == ["Draft 1"]
    assert drafts == [1]
    assert ForgetReceipt.objects.count() == 3
    turn = Turn.objects.get(chat__whatsapp_chat=CLIENT)
    assert (turn.state, turn.attempts, turn.error) == ("sent", 1, "")


@pytest.mark.parametrize(
    ("mentioned_in", "asked_by", "visibility"),
    [
        (CLIENT, CLIENT, "chat"),
        (GODFATHER, CLIENT, "public"),
        (GODFATHER, GODFATHER, "owner"),
        (CLIENT, GODFATHER, "chat"),
        (CLIENT, GODFATHER, "public"),
    ],
)
def test_what_the_chat_could_have_read_is_answered_anew(
    world: World, mentioned_in: str, asked_by: str, visibility: str
) -> None:
    world.remember(mentioned_in, FACTS[0])
    Memory.objects.update(visibility=visibility)
    drafts = while_answering(world, lambda: forget(world, FACTS[0]))
    assert world.say(asked_by, "Hello there") == ["Draft 2"]
    assert drafts == [1, 2]


def test_so_is_what_the_chat_could_read_when_it_began(world: World) -> None:
    """It was public until somebody made it the owner's, and then it was forgotten."""
    world.remember(GODFATHER, FACTS[0])
    Memory.objects.update(visibility="public")

    def hide_and_forget() -> None:
        key = Memory.objects.get().pk
        memory_set_visibility(memory_id=key, visibility="owner", actor=SYSTEM)
        forget(world, FACTS[0])

    drafts = while_answering(world, hide_and_forget)
    assert world.say(CLIENT, "Hello there") == ["Draft 2"]
    assert drafts == [1, 2]


def test_messages_of_a_client_dont_concern_the_owner(world: World) -> None:
    world.say(OTHER_CLIENT, FACTS[1])
    message = Message.objects.get(content=FACTS[1])

    def forget_message() -> None:
        world.forget("message", message.pk)

    while_answering(world, forget_message)
    assert world.say(GODFATHER, "Hello there") == ["Draft 1"]


def begun(scopes: Scopes) -> bool:
    """Whether another connection gets these locks at once."""

    def begin() -> bool:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = 100")
                forgetting_begin(scopes)
                return True
        except OperationalError:
            return False

    return elsewhere(begin)


def test_who_stores_holds_up_the_forgettings_of_what_is_seen_alone(world: World) -> None:
    world.say(CLIENT, "Hello")
    world.say(OTHER_CLIENT, "Hello")
    own, other = (world.chat(each).pk for each in (CLIENT, OTHER_CLIENT))

    def can_begin(*names: str, memories: bool = True) -> bool:
        return begun(Scopes(frozenset(names), memories=memories))

    with transaction.atomic():
        forgetting_wait(Reader(own))
        assert not can_begin(chat_scope(own))
        assert not can_begin(PUBLIC)
        assert can_begin(chat_scope(other))
        assert can_begin("owner")
    with transaction.atomic():
        forgetting_wait(Reader(own, sees_all=True))
        assert not can_begin(chat_scope(other))
        assert not can_begin("owner")
        assert can_begin(chat_scope(other), memories=False)


def test_two_forget_in_two_chats_at_once(world: World) -> None:
    """Each is in its transaction before the other ends."""
    world.remember(CLIENT, FACTS[0])
    world.remember(OTHER_CLIENT, FACTS[1])
    both_inside = threading.Barrier(2)

    def meet() -> None:
        both_inside.wait(30)

    def one(fact: str) -> str:
        key = Memory.objects.get(content=fact).pk
        receipt = object_forget(
            kind="memory", object_id=key, dependencies=dependencies_of(world), check=meet
        )
        return receipt.probe

    assert at_once(lambda: one(FACTS[0]), lambda: one(FACTS[1])) == ["absent", "absent"]
    assert left_of(FACTS[:2]) == []


def test_who_forgets_the_same_at_once_leaves_one_receipt(world: World) -> None:
    world.remember(GODFATHER, FACTS[0])
    key = Memory.objects.get().pk

    def one() -> str:
        try:
            return world.forget("memory", key).probe
        except NothingToForgetError:
            return "gone"

    assert sorted(at_once(one, one)) == ["absent", "gone"]
    assert ForgetReceipt.objects.count() == 1


def test_many_store_and_forget_at_once_and_nobody_waits_in_a_circle(world: World) -> None:
    """Messages with the same words in two chats, of the owner and of a client, with notes, are
    forgotten while both chats are answered."""
    people = (CLIENT, OTHER_CLIENT, GODFATHER)
    for who in people:
        for fact in FACTS:
            world.remember(who, fact)
    keys = list(Memory.objects.order_by("created_at").values_list("pk", flat=True))

    def forgets(mine: list[UUID]) -> Callable[[], list[str]]:
        return lambda: [world.forget("memory", key).probe for key in mine]

    def says(who: str) -> Callable[[], list[str]]:
        return lambda: [text for number in range(3) for text in world.say(who, f"Hi {number}")]

    works = [forgets(keys[:3]), forgets(keys[3:6][::-1]), forgets(keys[6:])]
    found = at_once(*works, *(says(who) for who in people))
    assert found[:3] == [["absent"] * 3] * 3
    faults = set(Turn.objects.exclude(error="").values_list("error", flat=True))
    assert {fault.partition(":")[0] for fault in faults} <= {"ForgottenMeanwhileError"}
    Turn.objects.update(not_before=None)
    world.work()
    assert Turn.objects.exclude(state="sent").count() == 0
    assert not Memory.objects.exists()


def test_what_concerns_more_than_is_locked_begins_again(world: World) -> None:
    world.remember(GODFATHER, FACTS[0])
    key = Memory.objects.get().pk
    seen: list[frozenset[str]] = []

    def begin(scopes: Scopes) -> Any:
        seen.append(scopes.names)
        held = forgetting_begin(scopes)
        if len(seen) == 1:
            elsewhere(
                lambda: memory_set_visibility(memory_id=key, visibility="public", actor=SYSTEM)
            )
        return held

    object_forget(kind="memory", object_id=key, dependencies=dependencies_of(world), begin=begin)
    assert [PUBLIC in names for names in seen] == [False, True]
