"""A session is read with its chat and its addresses in one statement, also beside other writers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from sessions_app.conversations.conversation_message import ConversationMessage
from sessions_app.conversations.session_lifecycle import session_lock, session_read
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.models import Chat, ChatSession, Message
from tests.threads import at_once, begin_blocked
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT

pytestmark = pytest.mark.django_db(transaction=True)


def new_session(whatsapp_chat: str = CLIENT) -> ChatSession:
    chat = Chat.objects.create(whatsapp_chat=whatsapp_chat, provider="cloud")
    chat.addresses.create(provider="cloud", address=whatsapp_chat)
    now = timezone.now()
    return ChatSession.objects.create(chat=chat, created_at=now, last_active=now)


def test_it_has_every_column_of_the_session_and_its_chat() -> None:
    session = new_session()
    found = session_read(session.pk)
    assert found is not None
    expected = ChatSession.objects.select_related("chat").get()
    for row, same in ((found.session, expected), (found.session.chat, expected.chat)):
        names = [field.attname for field in same._meta.concrete_fields]
        assert [getattr(row, name) for name in names] == [getattr(same, name) for name in names]
        assert not row._state.adding
    assert session_read(session.pk, chat_ids=[]) is None
    assert session_read(session.pk, chat_ids=[session.chat_id]) is not None


def test_it_has_the_addresses_that_its_chat_has_at_present() -> None:
    session = new_session(GODFATHER)
    gone = session.chat.addresses.create(provider="cloud", address=OTHER_CLIENT)
    gone.left_at = timezone.now()
    gone.save()
    found = session_read(session.pk)
    assert found is not None
    assert found.addresses == [GODFATHER]


def test_a_session_that_a_merge_moves_meanwhile_is_found_in_its_new_chat() -> None:
    session = new_session()
    kept = Chat.objects.create(whatsapp_chat=OTHER_CLIENT, provider="cloud")

    def lock() -> Any:
        with transaction.atomic():
            return session_lock(session.pk)

    with transaction.atomic():
        ChatSession.objects.filter(pk=session.pk).update(chat=kept)
        found = begin_blocked(lock)
    assert found.result().session.chat == kept


def test_two_writers_number_their_messages_without_gaps_and_doubles() -> None:
    session = new_session()
    service = ChatMemoryService()

    def write(name: str) -> None:
        for number in range(20):
            said = ConversationMessage("user", f"{name} {number}", timezone.now())
            service.add_messages(conversation_id=session.pk, messages=[said])

    at_once(*(partial(write, name) for name in "abcd"))
    numbers = Message.objects.order_by("order_num").values_list("order_num", flat=True)
    assert list(numbers) == list(range(1, 81))
    session.refresh_from_db()
    assert session.message_counter == 80
    assert session.total_tokens == sum(Message.objects.values_list("tokens", flat=True))
