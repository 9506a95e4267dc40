"""Two things at once: deliveries, workers and merges of chats in parallel."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from sessions_app.conversations.session_lifecycle import session_lock
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import Chat, ChatSession, Message, Turn
from sessions_app.turns.reply_store import Draft, reply_store
from sessions_app.turns.send import reply_send
from sessions_app.turns.turn_claims import TurnLease, turn_claim
from sessions_app.turns.turn_dependencies import TurnWork
from tests.threads import begin_blocked, in_threads
from tests.world import CLIENT, OTHER_CLIENT, World, message_from


@pytest.mark.django_db(transaction=True)
def test_the_same_delivery_in_parallel_is_stored_once_and_enqueued_once(world: World) -> None:
    event = message_from(CLIENT, "hello")
    in_threads(lambda: world.receive(event), 12)
    assert len(world.enqueued) == 1
    world.work()
    assert Message.objects.count() == 2
    assert len(world.provider.sent) == 1


@pytest.mark.django_db(transaction=True)
def test_messages_in_parallel_get_gapless_numbers_in_one_session(world: World) -> None:
    events = [message_from(CLIENT, f"message {number}") for number in range(8)]
    in_threads(lambda: world.receive(events.pop()), 8)
    messages = world.messages(CLIENT)
    assert [message.order_num for message in messages] == list(range(1, 9))
    assert len({message.session_id for message in messages}) == 1


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_answer_everything_once_and_in_order(world: World) -> None:
    world.receive(*(message_from(CLIENT, f"message {number}") for number in range(6)))
    in_threads(world.work, 3)
    world.work()
    assert [sent.text for sent in world.provider.sent] == [
        f"answer to: message {number}" for number in range(6)
    ]


@pytest.mark.django_db(transaction=True)
def test_a_merge_meanwhile_does_not_take_the_lease_away(world: World) -> None:
    world.receive(message_from(CLIENT, "hello"))
    lease = turn_claim(chat_id=world.chat(CLIENT).pk)
    assert lease is not None
    older = Chat.objects.create(whatsapp_chat="15550100321@c.us", provider="cloud")

    def read() -> Turn:
        with transaction.atomic():
            return lease.lock()

    with transaction.atomic():
        Turn.objects.update(chat=older)
        reading = begin_blocked(read)
    assert reading.result().chat_id == older.pk


@pytest.mark.django_db(transaction=True)
def test_a_claim_that_a_merge_overtakes_leaves_the_turn(world: World) -> None:
    world.receive(message_from(CLIENT, "being answered"), message_from(OTHER_CLIENT, "hello"))
    chat, other = world.chat(CLIENT), world.chat(OTHER_CLIENT)
    assert turn_claim(chat_id=chat.pk) is not None
    with transaction.atomic():
        Turn.objects.filter(chat=other).update(chat=chat)
        claim = begin_blocked(lambda: turn_claim(chat_id=other.pk))
    assert claim.result() is None
    assert list(Turn.objects.order_by("id").values_list("state", flat=True)) == [
        "running",
        "pending",
    ]


@dataclass(frozen=True)
class MergingLease(TurnLease):
    """While the worker is about to send, its chat is merged into an older one."""

    older: Chat

    def until(self) -> datetime:
        with transaction.atomic():
            young = Turn.objects.get(pk=self.turn_id).chat
            if young != self.older:
                chat_merge(young, self.older)
        return super().until()


def answered(world: World) -> TurnWork:
    """Return the work on a turn whose answer, of two parts, is stored and not sent."""
    world.receive(message_from(CLIENT, "hello"))
    lease = turn_claim(chat_id=world.chat(CLIENT).pk)
    assert lease is not None
    work = TurnWork(lease.row, lease, world.dependencies)
    work.turn = reply_store(work, Draft(text="the " * 1_500 + "answer"))
    return work


def test_a_merge_in_the_middle_of_a_send_does_not_lose_the_answer(world: World) -> None:
    older = Chat.objects.create(whatsapp_chat="15550100321@c.us", provider="cloud")
    work = answered(world)
    work.lease = MergingLease(work.lease.row, work.lease.token, older)
    reply_send(work)
    assert [sent.text[-6:] for sent in world.provider.sent] == ["he the", "answer"]
    turn = Turn.objects.get()
    assert (turn.state, turn.chat) == ("sent", older)


@pytest.mark.django_db(transaction=True)
def test_nor_does_a_merge_that_the_send_waits_for(world: World) -> None:
    older = Chat.objects.create(whatsapp_chat="15550100321@c.us", provider="cloud")
    work = answered(world)
    with transaction.atomic():
        Turn.objects.update(chat=older)
        sending = begin_blocked(lambda: reply_send(work))
    sending.result()
    assert [sent.text[-6:] for sent in world.provider.sent] == ["he the", "answer"]


@pytest.mark.django_db(transaction=True)
def test_a_session_that_a_merge_moves_meanwhile_is_found_in_its_new_chat() -> None:
    chat = Chat.objects.create(whatsapp_chat=CLIENT, provider="cloud")
    now = timezone.now()
    session = ChatSession.objects.create(chat=chat, created_at=now, last_active=now)
    kept = Chat.objects.create(whatsapp_chat=OTHER_CLIENT, provider="cloud")

    def lock() -> Any:
        with transaction.atomic():
            return session_lock(session.pk)

    with transaction.atomic():
        ChatSession.objects.filter(pk=session.pk).update(chat=kept)
        found = begin_blocked(lock)
    assert found.result().session.chat == kept
