"""A chat's whole conversation, page by page: nothing twice, nothing missed, in order."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings, strategies as st
from hypothesis.extra.django import TestCase

from memoryproject.foundation.text.terms import index_terms
from sessions_app.conversations import timeline
from sessions_app.conversations.timeline import PAGE
from sessions_app.models import Chat, ChatSession, Message
from tests.copies import row_copy
from tests.fuzz.damage import FACTOR
from tests.plans import rows_read

BEGAN = datetime(2026, 3, 1, tzinfo=timezone.utc)


def conversation(lengths: list[int], name: str = "15550100123@c.us") -> Chat:
    """A chat with a session for each length, a day apart, and so many messages in it."""
    chat = Chat.objects.create(whatsapp_chat=name, provider="cloud")
    for day, length in enumerate(lengths):
        began = BEGAN + timedelta(days=day)
        last = day == len(lengths) - 1
        session = ChatSession.objects.create(
            chat=chat,
            created_at=began,
            last_active=began + timedelta(minutes=length),
            status="active" if last else "expired",
            expired_at=None if last else began + timedelta(hours=23),
        )
        if not length:
            continue
        first = Message.objects.create(
            session=session,
            chat=chat,
            order_num=1,
            role="user",
            content=f"day {day} number 1",
            timestamp=began + timedelta(minutes=1),
            received_at=began + timedelta(minutes=1),
            tokens=1,
        )
        row_copy(
            first,
            length - 1,
            message_id="gen_random_uuid()",
            order_num="number + 1",
            content=f"'day {day} number ' || number + 1",
            timestamp="timestamp + number * interval '1 minute'",
            received_at="received_at + number * interval '1 minute'",
        )
    return chat


def in_order(chat: Chat) -> list[UUID]:
    ordered = chat.messages.order_by("session__created_at", "order_num")
    return list(ordered.values_list("pk", flat=True))


def keys(messages: list[Message]) -> list[UUID]:
    return [message.pk for message in messages]


class Walks(TestCase):
    @settings(max_examples=12 * FACTOR, deadline=None)
    @given(lengths=st.lists(st.integers(0, 130), max_size=70).filter(lambda each: sum(each) < 900))
    def test_pages_hold_every_message_once_and_in_order(self, lengths: list[int]) -> None:
        with transaction.atomic():
            chat = conversation(lengths)
            conversation([3, 3], "15550100456@c.us")
            everything = in_order(chat)
            assert keys(back_to_front(chat)) == everything
            assert keys(front_to_back(chat)) == everything
            transaction.set_rollback(True)


def back_to_front(chat: Chat) -> list[Message]:
    page = timeline.page_before(chat)
    assert not page.newer
    found = page.messages
    while page.older:
        place = timeline.place_of(chat, found[0].pk)
        assert place is not None
        page = timeline.page_before(chat, place)
        assert page.newer
        assert len(page.messages) <= PAGE
        found = [*page.messages, *found]
    return found


def front_to_back(chat: Chat) -> list[Message]:
    page = timeline.page_after(chat, timeline.BEGINNING)
    assert not page.older
    found = page.messages
    while page.newer:
        place = timeline.place_of(chat, found[-1].pk)
        assert place is not None
        page = timeline.page_after(chat, place)
        assert page.older
        found = [*found, *page.messages]
    return found


@pytest.mark.django_db
def test_around_a_message_stand_those_before_and_after_it() -> None:
    chat = conversation([40, 1, 40])
    everything = in_order(chat)
    place = timeline.place_of(chat, everything[40])
    assert place is not None
    page = timeline.page_around(chat, place)
    assert keys(page.messages) == everything[15:65]
    assert (page.older, page.newer) == (True, True)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("at", "first"),
    [
        (BEGAN - timedelta(days=9), "day 0 number 1"),
        (BEGAN + timedelta(minutes=2), "day 0 number 2"),
        (BEGAN + timedelta(minutes=4), "day 2 number 1"),
        (BEGAN + timedelta(days=9), None),
    ],
)
def test_the_first_message_since_a_time(at: datetime, first: str | None) -> None:
    chat = conversation([3, 0, 3])
    found = timeline.first_since(chat, at)
    assert (Message.objects.get(pk=found).content if found else None) == first


@pytest.mark.django_db
def test_words_are_found_in_any_language_and_as_they_are_written() -> None:
    chat = conversation([3])
    Message.objects.filter(order_num=2).update(content="מה הקוד לדלת 100%?")
    assert len(timeline.messages_found(chat, "קוד לדלת")) == 1
    assert len(timeline.messages_found(chat, "100%")) == 1
    assert len(timeline.messages_found(chat, "NUMBER")) == 2
    assert timeline.messages_found(chat, "day%") == []


@pytest.mark.django_db
def test_a_word_is_found_anywhere_and_a_part_of_one_among_the_newest() -> None:
    chat = conversation([40])
    Message.objects.filter(order_num__in=[2, 30]).update(
        content="the invoice of May", terms=index_terms("the invoice of May")
    )

    def found(text: str) -> list[int]:
        return [one.order_num for one in timeline.messages_found(chat, text, parts_among=20)]

    assert found("invoice") == [30, 2]
    assert found("Invoices") == [30, 2]
    assert found("NVOI") == [30]
    assert found("number 21") == [21]
    assert found("umber 20") == []


@pytest.mark.django_db
def test_a_page_at_the_end_of_a_long_conversation_reads_little() -> None:
    chat = conversation([5_000, 10])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    with CaptureQueriesContext(connection) as asked:
        page = timeline.page_before(chat)
    assert len(page.messages) == PAGE
    assert len(asked) == 2
    assert rows_read(asked) < 1_000
