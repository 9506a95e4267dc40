"""Cards of stored sessions: made when a session ends, on demand, and again when it changes."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone
from django_q.models import OrmQ

from cards_app.memory_card import check_card
from cards_app.models import MemoryCard
from memoryproject.foundation.integrations.whatsapp.events import (
    MessageEdited,
    MessageRevoked,
    Party,
)
from memoryproject.foundation.retrieval.query import with_words
from sessions_app.cards.make_cards import (
    SessionBusyError,
    SessionNotFoundError,
    card_make,
    cards_make,
)
from sessions_app.conversations.message_store import NewMessage
from sessions_app.conversations.session_lifecycle import cards_outdate, cards_sweep
from sessions_app.history.clear_session import sessions_expire
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import CardWork, Chat, ChatSession, Message
from tests.cards.making import make_due
from tests.threads import begin_blocked, in_threads
from tests.world import CLIENT, NUMBER_ID, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db

ASKED = "Which rooms do you have? We decided to come to Haifa in June with Dana Levi."


def changed(kind: Any, original_id: str, **more: Any) -> Any:
    return kind(
        provider="cloud",
        number_id=NUMBER_ID,
        delivery_key=f"{NUMBER_ID}:change:{original_id}:{kind.__name__}",
        raw={},
        party=Party(phone=CLIENT.split("@")[0]),
        timestamp=timezone.now(),
        original_id=original_id,
        **more,
    )


def ended(world: World, *texts: str, who: str = CLIENT) -> ChatSession:
    """A session in which this was said, and which has expired."""
    for text in texts:
        world.say(who, text)
    session = world.session(who)
    ChatSession.objects.filter(pk=session.pk).update(
        last_active=timezone.now() - timedelta(hours=30)
    )
    assert sessions_expire(now=timezone.now(), timeout=timedelta(hours=24)) == 1
    session.refresh_from_db()
    return session


def test_a_card_is_made_when_its_session_expires(world: World) -> None:
    session = ended(world, ASKED)
    assert CardWork.objects.get().pk == session.pk
    assert make_due() == 1
    assert not CardWork.objects.exists()
    card = MemoryCard.objects.get()
    assert (card.session_id, card.chat_id) == (session.pk, session.chat_id)
    assert card.session_started_at == session.created_at
    assert card.title == ASKED
    assert card.summary_bullets[1].startswith("[assistant] answer to: Which rooms")
    assert card.decisions[0] == "We decided to come to Haifa in June with Dana Levi."
    assert {"Haifa", "Dana Levi"} <= set(card.entities)
    assert card.algorithm_version == "1.8"
    assert check_card(card.card) == []


def test_by_reset_too(world: World) -> None:
    world.say(CLIENT, ASKED)
    old = world.session(CLIENT)
    world.say(CLIENT, "/reset")
    assert CardWork.objects.get().pk == old.pk


@pytest.mark.django_db(transaction=True)
def test_the_workers_are_told_after_the_commit(world: World) -> None:
    ended(world, ASKED)
    (queued,) = [task for task in OrmQ.objects.all() if "make_cards" in str(task.func())]
    assert queued.task["args"] == ([str(ChatSession.objects.get().pk)],)


def test_what_is_no_conversation_is_left_out(world: World) -> None:
    world.remember(CLIENT, "Breakfast is at seven")
    world.say(CLIENT, "/memories")
    world.say(CLIENT, "When is lunch?")
    world.receive(message_from(CLIENT, "", kind="image"))
    card = card_make(session_id=world.session(CLIENT).pk)
    assert card.title == "When is lunch?"
    assert [bullet.split()[0] for bullet in card.summary_bullets] == ["[user]", "[assistant]"]


def test_summaries_that_we_made_are_no_messages(world: World) -> None:
    world.summarizing(every=2)
    for text in ("first question", "second question", "third question"):
        world.say(CLIENT, text)
    assert world.sum_up(CLIENT)
    card = card_make(session_id=world.session(CLIENT).pk)
    assert all("[summary]" not in bullet for bullet in card.summary_bullets)


def test_where_the_messages_were_deleted_the_summary_stands_for_them(world: World) -> None:
    world.summarizing(every=2, delete_summarized_messages=True)
    for text in ("first question", "second question", "third question"):
        world.say(CLIENT, text)
    assert world.sum_up(CLIENT)
    card = card_make(session_id=world.session(CLIENT).pk)
    assert card.summary_bullets[0].startswith("[summary] ")


def test_the_same_messages_leave_the_card_as_it_is(world: World) -> None:
    session = ended(world, ASKED)
    first = card_make(session_id=session.pk)
    again = card_make(session_id=session.pk)
    assert (again.extracted_at, again.source_digest) == (first.extracted_at, first.source_digest)
    assert not CardWork.objects.exists()


def test_an_edit_makes_it_again(world: World) -> None:
    message = message_from(CLIENT, ASKED)
    world.receive(message)
    world.work()
    session = ended(world, "thanks")
    make_due()
    world.receive(changed(MessageEdited, message.provider_message_id, text="Do you have a garden?"))
    assert not MemoryCard.objects.exists(), "what it told is not what was said any more"
    assert make_due() == 1
    assert MemoryCard.objects.get().title == "Do you have a garden?"
    assert session.pk == MemoryCard.objects.get().pk


def test_a_revoked_message_leaves_the_card_at_once(world: World) -> None:
    message = message_from(CLIENT, ASKED)
    world.receive(message)
    world.work()
    ended(world, "And the price?")
    make_due()
    world.receive(changed(MessageRevoked, message.provider_message_id))
    assert not MemoryCard.objects.exists()
    make_due()
    assert MemoryCard.objects.get().title == "And the price?"


def test_messages_that_come_in_later_make_it_again(world: World) -> None:
    session = ended(world, ASKED)
    make_due()
    memory = world.rules.chat_memory
    before = MemoryCard.objects.get()
    session.refresh_from_db()
    memory.append(
        session=session, new=[_said("Is there parking?")], role="client", now=timezone.now()
    )
    assert make_due() == 1
    assert "Is there parking?" in MemoryCard.objects.get().notable_quotes
    assert MemoryCard.objects.get().source_digest != before.source_digest


def test_the_card_of_a_session_that_goes_on_follows_it(world: World) -> None:
    world.say(CLIENT, ASKED)
    card_make(session_id=world.session(CLIENT).pk)
    world.say(CLIENT, "Is there parking?")
    assert not CardWork.objects.exists(), "answering isn't slowed down by it"
    assert make_due() == 1
    assert "Is there parking?" in MemoryCard.objects.get().notable_quotes
    assert make_due() == 0


def test_clearing_a_session_takes_its_card(world: World) -> None:
    session = ended(world, ASKED)
    make_due()
    world.rules.chat_memory.clear_messages(conversation_id=session.pk)
    assert not MemoryCard.objects.exists()
    make_due()
    assert MemoryCard.objects.get().title == "Untitled Session"


def test_cards_move_with_their_chat(world: World) -> None:
    first, second = ended(world, ASKED), ended(world, "Hello", who=OTHER_CLIENT)
    make_due()
    old = chat_merge(Chat.objects.get(pk=first.chat_id), Chat.objects.get(pk=second.chat_id))
    assert MemoryCard.objects.filter(chat_id=old.pk).count() == 2


def test_a_session_that_is_gone_is_said_so(world: World) -> None:
    with pytest.raises(SessionNotFoundError, match="There is no session"):
        card_make(session_id=Chat().pk)


def test_cards_are_found_by_their_words_in_any_form(world: World) -> None:
    ended(world, "החלטנו להזמין ארבעה שולחנות לחתונה בחיפה", who=OTHER_CLIENT)
    ended(world, ASKED)
    make_due()
    cards = MemoryCard.objects.all()
    assert [card.title[:5] for card in with_words(cards, "room in Haifa")] == ["Which"]
    assert [card.title[:6] for card in with_words(cards, "שולחן חתונה")] == ["החלטנו"]
    assert not with_words(cards, "the and of").exists()
    assert not with_words(cards, "garden").exists()


def test_export_tells_of_the_chats_own_cards(world: World) -> None:
    ended(world, ASKED)
    ended(world, "A matter of somebody else", who=OTHER_CLIENT)
    make_due()
    (told,) = world.say(CLIENT, "/export")
    assert f"Kept in short of 1 of these sessions:\n\n- {timezone.now():%Y-%m-%d}: {ASKED}" in told
    assert "somebody else" not in told


def test_personal_data_is_not_on_it(world: World) -> None:
    session = ended(world, "Call me: 050-1234567 or dana@shop.example, card 4111 1111 1111 1111")
    stored = str(vars(card_make(session_id=session.pk)))
    assert "[phone]" in stored
    assert not any(text in stored for text in ("1234567", "dana@shop", "4111"))


@pytest.mark.django_db(transaction=True)
def test_a_change_while_it_is_made_is_never_lost(world: World) -> None:
    """The maker has read the messages and waits for the session to store the card; meanwhile
    one of them is taken away."""
    session = ended(world, ASKED, "Is there parking?")
    with transaction.atomic():
        ChatSession.objects.select_for_update(no_key=True).get(pk=session.pk)
        made = begin_blocked(lambda: card_make(session_id=session.pk))
        Message.objects.filter(session=session, content=ASKED).update(
            content="", revoked_at=timezone.now()
        )
        cards_outdate(session_ids=[session.pk])
    made.result()
    assert MemoryCard.objects.get().title == "Is there parking?"
    assert not CardWork.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_makers_side_by_side_make_one_card(world: World) -> None:
    session = ended(world, ASKED)

    def maker() -> None:
        with suppress(SessionBusyError):
            card_make(session_id=session.pk)

    in_threads(maker, 4)
    assert MemoryCard.objects.get().title.startswith("Which rooms")


def test_many_messages_take_few_queries(world: World, django_assert_max_num_queries: Any) -> None:
    world.say(CLIENT, ASKED)
    session = world.session(CLIENT)
    world.rules.chat_memory.append(
        session=session,
        new=[_said(f"Message number {number} of many") for number in range(1_000)],
        role="client",
        now=timezone.now(),
    )
    with django_assert_max_num_queries(22):
        card_make(session_id=session.pk)


def test_the_sweep_leaves_what_was_just_asked_for_to_the_workers(world: World) -> None:
    ended(world, ASKED)
    seen: list[Any] = []
    assert cards_sweep(enqueue=seen.append) == 0
    assert cards_sweep(enqueue=seen.append, now=timezone.now() + timedelta(minutes=1)) == 1
    assert seen == [[ChatSession.objects.get().pk]]


def _said(content: str) -> Any:
    return NewMessage(role="user", content=content, timestamp=timezone.now())


def test_a_card_that_can_t_be_made_keeps_no_other_waiting(world: World) -> None:
    """It is tried again later and later, and made once it can be."""
    bad = ended(world, "Which rooms do you have?")
    good = ended(world, "Where are you?", who=OTHER_CLIENT)

    def make(*, session_id: UUID) -> MemoryCard:
        if session_id == bad.pk:
            raise RuntimeError("no card of this")
        return card_make(session_id=session_id)

    assert cards_make(session_ids=[bad.pk, good.pk], make=make) == 1
    assert MemoryCard.objects.get().session_id == good.pk

    now = timezone.now()
    assert cards_make(session_ids=[bad.pk], make=make) == 0
    work = CardWork.objects.get()
    assert (work.pk, work.attempts) == (bad.pk, 2)
    assert timedelta(minutes=1) < work.due_at - now <= timedelta(minutes=3)
    due: list[Any] = []
    assert cards_sweep(enqueue=due.append, now=now + timedelta(minutes=1)) == 0
    assert cards_sweep(enqueue=due.append, now=now + timedelta(minutes=4)) == 1

    assert cards_make(session_ids=[bad.pk]) == 1
    assert not CardWork.objects.exists()
