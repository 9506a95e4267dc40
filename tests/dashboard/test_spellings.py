"""Staff find and name a person as people write them: by name, number or id, in any spelling, by an
index however many chats there are."""

from __future__ import annotations

import re
from datetime import date
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memories_app.models import Memory
from sessions_app.contacts.contact_list import contacts_found
from sessions_app.conversations.chat_queries import with_address, with_name
from sessions_app.documents.admin import UploadForm
from sessions_app.forgetting.choose_pages import SearchForm
from sessions_app.models import Chat, ChatActivity, ChatAddress
from tests.copies import chats_many
from tests.dashboard.staff import page
from tests.plans import plans_of, rows_read, rows_scanned_in_sequence
from tests.world import CLIENT, World, write_as

pytestmark = pytest.mark.django_db


OMAR, TWIN = "972550100101@c.us", "15550100101@c.us"
IDS = [OMAR, f"+{OMAR}", "+972550100101", "972550100101@C.US", "972550100101@s.whatsapp.net"]
NUMBERS = ["055-010-0101", "0550100101", "+972 (0)55 010 0101", "00972550100101"]
# The searches that also take a part of a name or a number, and those that take whole ones alone.
PARTS = {
    "/admin/contacts/?q=": r'class="contact-name"[^>]*><bdi>(.*?)</bdi>',
    "/admin/sessions_app/chat/?q=": r'<span class="chat-address quiet"><bdi dir="ltr">(.*?)</bdi>',
    "/admin/search/?words=": r'class="search-hit" href="[^"]*/chat/([^"]*)/conversation/"',
    "/admin/memories_app/memory/?chat=": r'field-short_content.*?dir="auto">(.*?)</span>',
}
ROWS = ("turn", "message", "inbounddelivery", "outboundpart")


@pytest.fixture
def omar(world: World) -> Chat:
    for address, name in ((OMAR, "Omar"), (CLIENT, "Dana")):
        write_as(world, address, name, f"/remember {name} likes tea")
    return world.chat(OMAR)


@pytest.mark.parametrize("written", [*IDS, *NUMBERS, "0101", "oma", "OMAR"])
def test_every_search_finds_a_person(omar: Chat, admin_client: Client, written: str) -> None:
    for search, found in PARTS.items():
        shown = page(admin_client, f"{search}{quote(written)}")
        assert len(re.findall(found, shown, re.S)) == 1, search
    if written in IDS + NUMBERS:
        for name in ROWS:
            address = reverse(f"admin:sessions_app_{name}_changelist")
            listed = admin_client.get(address, {"q": written}).context["cl"].queryset
            chats = {getattr(each, "chat", None) or each.turn.chat for each in listed}
            assert chats == {omar}, name


def test_forms_take_ids_in_any_spelling(omar: Chat) -> None:
    for written in [*IDS, "972550100101"]:
        for form in (UploadForm({"whatsapp_chat": written}), SearchForm({"chat": written})):
            form.is_valid()
            assert omar in form.cleaned_data.values(), written


def add(client: Client, named: str) -> str:
    form = {"content": "Likes rice", "type": "fact", "visibility": "chat", "whatsapp_chat": named}
    return client.post("/admin/memories_app/memory/add/", form, follow=True).content.decode()


@pytest.mark.parametrize(
    "named",
    [
        *(OMAR, "+972 55-010-0101", "055-010-0101", "972550100101", " omar ", "דנה לוי"),
        *("\u2068דנה לוי\u2069", "\u2066+972 55-010-0101\u2069"),
    ],
)
def test_a_contact_is_named_as_people_know_it(admin_client: Client, omar: Chat, named: str) -> None:
    Chat.objects.filter(pk=omar.pk).update(staff_name="דנה לוי")
    add(admin_client, named)
    assert Memory.objects.get(content="Likes rice").chat_id == omar.pk


def test_who_is_not_clear_is_not_guessed(admin_client: Client, world: World, omar: Chat) -> None:
    for named in ("Oma", "0101", "somebody", "15550100999@c.us"):
        shown = add(admin_client, named)
        assert "No contact has this name or number." in shown
        assert f'value="{named}"' in shown
    write_as(world, TWIN, "OMAR")
    assert "Several contacts have this name or number" in add(admin_client, "omar")
    # A number that somebody left names nobody.
    Chat.objects.filter(pk=omar.pk).update(whatsapp_chat="IL.1@bsuid")
    link = ChatAddress.objects.get(chat=omar)
    link.left_at = link.created_at
    link.save()
    assert "No contact has this name or number." in add(admin_client, "+972 55-010-0101")
    assert not Memory.objects.filter(content="Likes rice").exists()


CROWD = 5_000
TODAY = date(2026, 1, 1)


def person(name: str, address: str, **more: str) -> Chat:
    chat = Chat.objects.create(whatsapp_chat=address, provider="cloud", client_name=name, **more)
    ChatAddress.objects.create(chat=chat, provider="cloud", address=address)
    ChatActivity.objects.create(chat=chat, last_at=chat.created_at)
    return chat


@pytest.fixture(scope="module")
def crowd(module_rows: None) -> None:
    chats_many(CROWD)


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
