"""Merges and splits by staff while people write, workers answer, and others merge the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from functools import partial
from uuid import UUID

import pytest

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.llm.base import ChatRequest
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.merging.merge_chats import (
    MergeError,
    SeenChangedError,
    contacts_merge,
    merge_preview,
)
from sessions_app.merging.split_contact import merge_undo, undo_preview
from sessions_app.models import Chat, ContactMerge, Message
from tests.threads import begin, in_threads
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

NOA = Actor("staff", "noa")


def merge(world: World, one: UUID, other: UUID) -> Chat:
    """Look at the preview and confirm it, until nothing changes in between."""
    memory = world.dependencies.chat_memory
    while True:
        chats = [Chat.objects.get(pk=key) for key in (one, other)]
        seen = merge_preview(*chats, chat_memory=memory).seen
        try:
            return contacts_merge(
                one=one, other=other, name="", seen=seen, actor=NOA, chat_memory=memory
            )
        except SeenChangedError:
            continue


def undo() -> Chat:
    while True:
        record = ContactMerge.objects.get()
        try:
            return merge_undo(merge_id=record.pk, seen=undo_preview(record).seen, actor=NOA)
        except SeenChangedError:
            continue


def both(world: World) -> tuple[UUID, UUID]:
    world.say(CLIENT, "hello")
    world.say(OTHER_CLIENT, "hello from work")
    return world.chat(CLIENT).pk, world.chat(OTHER_CLIENT).pk


def while_people_write(world: World, work: Callable[[], object]) -> None:
    """Do the work while both write, each some messages one after the other."""

    def write(number: str) -> None:
        for count in range(6):
            world.receive(message_from(number, f"{number} {count}"))

    writers = [begin(partial(write, each)) for each in (CLIENT, OTHER_CLIENT)]
    try:
        work()
    finally:
        wait(writers)
    for writer in writers:
        writer.result()


def numbered(chat_id: UUID) -> None:
    """Each session of the chat has its messages once, and none of another chat."""
    for session in Chat.objects.get(pk=chat_id).sessions.all():
        numbers = list(session.messages.order_by("order_num").values_list("order_num", flat=True))
        assert len(numbers) == len(set(numbers))
        assert session.message_counter >= max(numbers, default=0)
        assert set(session.messages.values_list("chat_id", flat=True)) <= {chat_id}


@pytest.mark.django_db(transaction=True)
def test_no_message_is_lost_in_a_merge_nor_in_its_undoing(world: World) -> None:
    one, other = both(world)
    while_people_write(world, lambda: merge(world, one, other))
    assert Chat.objects.get().pk == one
    assert Message.objects.filter(chat=one, role="user").count() == 14
    numbered(one)
    while_people_write(world, undo)
    world.work()
    for key, number in ((one, CLIENT), (other, OTHER_CLIENT)):
        said = Message.objects.filter(chat=key, role="user")
        assert said.count() == 13
        assert set(said.values_list("sender", flat=True)) == {number}
        assert Chat.objects.get(pk=key).turns.exclude(state="sent").count() == 0
        numbered(key)


@pytest.mark.django_db(transaction=True)
def test_of_two_who_merge_the_same_at_once_one_does_it(world: World) -> None:
    one, other = both(world)
    memory = world.dependencies.chat_memory
    seen = merge_preview(*Chat.objects.all(), chat_memory=memory).seen

    def confirm() -> str:
        try:
            contacts_merge(one=one, other=other, name="", seen=seen, actor=NOA, chat_memory=memory)
        except MergeError as error:
            return str(error)
        return "merged"

    done = in_threads(confirm, 3)
    assert sorted(map(str, done)) == ["One of the contacts isn't there any more."] * 2 + ["merged"]
    assert ContactMerge.objects.count() == 1


@pytest.mark.django_db
def test_an_answer_made_of_both_is_made_again_when_the_merge_is_undone(world: World) -> None:
    world.remember(CLIENT, "The safe's code is 1234")
    world.say(OTHER_CLIENT, "hello")
    one, other = world.chat(CLIENT).pk, world.chat(OTHER_CLIENT).pk
    merge(world, one, other)

    def answer(request: ChatRequest) -> str:
        known = "1234" in "\n".join(message.content for message in request.messages)
        if known:
            undo()
        return f"known: {known}"

    model = ScriptedChatModel(answer)
    world.use(chat_model=model)
    world.receive(message_from(OTHER_CLIENT, "What is the safe's code?"))
    world.work()
    # The worker lost the turn; the page that undid the merge enqueues both contacts.
    world.work()
    assert [sent.text for sent in world.provider.sent[-1:]] == ["known: False"]
    assert world.provider.sent[-1].to.whatsapp_chat == OTHER_CLIENT
    assert Message.objects.filter(chat=other, content="known: False").exists()
    assert not Message.objects.filter(content="known: True").exists()
