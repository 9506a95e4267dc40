"""The search for people by a part of a name or an address reads few rows, however many chats."""

from __future__ import annotations

from datetime import date

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.contacts.contact_list import contacts_found
from sessions_app.conversations.facade import with_address, with_name
from sessions_app.models import Chat, ChatActivity, ChatAddress
from tests.plans import plans_of, rows_read, rows_scanned_in_sequence

pytestmark = pytest.mark.django_db
CROWD = 5_000
TODAY = date(2026, 1, 1)

CHATS = """
INSERT INTO sessions_app_chat (id, whatsapp_chat, provider, number_id, is_group, client_name,
    staff_name, client_phone, language, created_at, updated_at)
SELECT gen_random_uuid(), 15550000000 + number || '@c.us', 'cloud', '', false,
    'Client ' || number, '', 15550000000 + number, '', now(), now()
FROM generate_series(1, %s) AS number
"""
AROUND = """
INSERT INTO sessions_app_chataddress (chat_id, provider, address, created_at)
SELECT id, 'cloud', whatsapp_chat, now() FROM sessions_app_chat;
INSERT INTO sessions_app_chatactivity (chat_id, last_at) SELECT id, now() FROM sessions_app_chat;
ANALYZE sessions_app_chat, sessions_app_chataddress, sessions_app_chatactivity;
"""


def person(name: str, address: str, **more: str) -> Chat:
    chat = Chat.objects.create(whatsapp_chat=address, provider="cloud", client_name=name, **more)
    ChatAddress.objects.create(chat=chat, provider="cloud", address=address)
    ChatActivity.objects.create(chat=chat, last_at=chat.created_at)
    return chat


@pytest.fixture(scope="module")
def crowd(module_rows: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(CHATS, [CROWD])
        cursor.execute(AROUND)


@pytest.mark.parametrize("query", ["דנה", "Straße", "bakery", "49301", "GREEN-7", "zq", "ß"])
def test_a_rare_name_or_address_is_found_by_an_index(crowd: None, query: str) -> None:
    chat = person("Dana Straßenzq", "972550149301@c.us", staff_name="דנה מהמאפייה (bakery)")
    ChatAddress.objects.create(chat=chat, provider="green", address="green-7@lid")
    with CaptureQueriesContext(connection) as queries:
        assert list(contacts_found(query, today=TODAY)[:51]) == [chat]
    assert sum(map(rows_scanned_in_sequence, plans_of(queries))) == 0
    assert rows_read(queries) < 100


def test_what_is_frequent_is_found_without_reading_all(crowd: None) -> None:
    assert contacts_found("client 4", today=TODAY).count() == 1_111
    assert contacts_found("5", today=TODAY).count() == CROWD
    with CaptureQueriesContext(connection) as queries:
        assert len(contacts_found("client", today=TODAY)[:51]) == 51
    assert rows_read(queries) < CROWD


@pytest.mark.parametrize("query", ["50%", "a_b", "c\\d", "o'hara", 'say "hi"', "50% a_b", "A_B c"])
def test_characters_with_a_meaning_in_sql_are_looked_for_as_they_are(query: str) -> None:
    chat = person('50% a_b c\\d O\'Hara say "hi"', "15550100123@c.us")
    person("500 axb cxd", "15550100456@c.us")
    assert list(Chat.objects.filter(with_name(query))) == [chat]


def test_a_part_of_an_address_finds_no_names(crowd: None) -> None:
    person("Room 9999", "15550177777@c.us")
    chat = person("", "9999@lid")
    assert list(Chat.objects.filter(with_address("9999"))) == [chat]
    assert set(Chat.objects.filter(with_name("9999"))) == {
        chat,
        Chat.objects.get(client_name="Room 9999"),
    }


def test_postgresql_keeps_no_statistics_of_the_indexed_names(crowd: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stats WHERE tablename LIKE '%_by_parts'")
        assert cursor.fetchone() == (0,)
