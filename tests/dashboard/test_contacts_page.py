"""The list of contacts: who is in it, how a person is found, and what it shows to whom."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.conversations.facade import with_name
from sessions_app.inbox.labels import chats_label
from sessions_app.models import Chat, ChatAccess, ChatAddress, Label
from tests.dashboard.staff import staff_with
from tests.plans import plans_of
from tests.world import CLIENT, OTHER_CLIENT, World, message_from, write_as

pytestmark = pytest.mark.django_db
CONTACTS = "/admin/contacts/"
OMAR = "972550100101@c.us"


def page(client: Client, **asked: Any) -> str:
    answer = client.get(CONTACTS, asked)
    assert answer.status_code == 200
    return answer.content.decode()


def rows(shown: str) -> list[str]:
    return re.findall(r'<li class="contact">.*?</li>', shown, re.S)


def names(shown: str) -> list[str]:
    return re.findall(r'class="contact-name"[^>]*><bdi>(.*?)</bdi>', shown)


def test_people_are_listed_with_their_number_and_what_is_kept_of_them(
    admin_client: Client, world: World
) -> None:
    write_as(world, OMAR, "Omar")
    write_as(world, CLIENT, "Dana")
    write_as(world, OMAR, "Omar", "/remember I drink tea")
    shown = page(admin_client)
    assert names(shown) == ["Omar", "Dana"]
    row = rows(shown)[0]
    assert '<bdi dir="ltr">+972 55-010-0101</bdi>' in row
    assert "1 conversation<" in row
    assert "1 memory<" in row
    assert "0\xa0minutes ago" in row


@pytest.mark.parametrize(
    "written",
    ["055-010-0101", "0550100101", "+972 (0)55 010 0101", "00972550100101", "0101", "oma"],
)
def test_a_person_is_found_as_people_write(
    admin_client: Client, world: World, written: str
) -> None:
    write_as(world, OMAR, "Omar")
    write_as(world, CLIENT, "Dana")
    assert names(page(admin_client, q=written)) == ["Omar"]


def test_a_person_is_found_by_another_of_their_numbers(admin_client: Client, world: World) -> None:
    write_as(world, CLIENT, "Dana")
    world.say(OTHER_CLIENT, "hello")
    ChatAddress.objects.create(
        chat=world.chat(CLIENT), provider="green", address="972521234567@c.us"
    )
    assert names(page(admin_client, q="052-1234567")) == ["Dana"]


@pytest.mark.parametrize("address", ["message", "turn", "inbounddelivery", "outboundpart"])
def test_the_raw_lists_find_a_local_number(
    admin_client: Client, world: World, address: str
) -> None:
    party = Party(phone="972550100101", name="Omar")
    world.receive(message_from(OMAR, "shalom", party=party), message_from(CLIENT, "hello"))
    world.work()
    answer = admin_client.get(f"/admin/sessions_app/{address}/", {"q": "055-010-0101"})
    found = answer.context["cl"].queryset
    assert found
    assert {
        each.chat.whatsapp_chat if hasattr(each, "chat") else each.turn.chat.whatsapp_chat
        for each in found
    } == {OMAR}


def test_groups_are_not_people(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    Chat.objects.update(is_group=True)
    assert "Everybody who writes to the assistant becomes a contact." in page(admin_client)


def test_it_says_where_nobody_is_found(admin_client: Client, world: World) -> None:
    write_as(world, OMAR, "Omar")
    assert "No matching contact" in page(admin_client, q="nobody")
    assert names(page(admin_client, q="\x00", access="x", p="-3")) == ["Omar"]


def test_blocked_people_are_marked_and_found(admin_client: Client, world: World) -> None:
    write_as(world, OMAR, "Omar")
    write_as(world, CLIENT, "Dana")
    ChatAccess.objects.update_or_create(chat=world.chat(CLIENT), defaults={"standing": "blocked"})
    label = Label.objects.create(name="Urgent", colour="red")
    chats_label(chat_ids=[world.chat(CLIENT).pk], label=label, actor=Actor("staff", "x"))
    shown = page(admin_client, access="blocked")
    assert names(shown) == ["Dana"]
    assert '<span class="state bad">blocked</span>' in rows(shown)[0]
    assert '<bdi class="label red">Urgent</bdi>' in rows(shown)[0]


def test_what_a_reader_may_not_see_is_not_counted(world: World) -> None:
    write_as(world, OMAR, "Omar")
    shown = page(staff_with("sessions_app.view_chat"))
    assert names(shown) == ["Omar"]
    assert "memories" not in rows(shown)[0]
    assert "conversation<" not in rows(shown)[0]
    assert 'href="/admin/contacts/"' in shown


def test_the_list_is_for_those_who_may_see_chats(client: Client) -> None:
    assert client.get(CONTACTS).status_code == 302
    assert staff_with("sessions_app.view_message").get(CONTACTS).status_code == 403


def test_fifty_people_take_as_many_queries_as_three(admin_client: Client, world: World) -> None:
    def make(first: int, count: int) -> None:
        for number in range(first, first + count):
            write_as(world, f"1555010{number:04}@c.us", f"Person {number}")

    make(0, 3)
    page(admin_client)
    with CaptureQueriesContext(connection) as few:
        page(admin_client, q="person")
    make(3, 50)
    with CaptureQueriesContext(connection) as many:
        shown = page(admin_client, q="person")
    assert len(many) == len(few)
    assert len(rows(shown)) == 50
    assert "1–50 of 53" in shown
    assert len(rows(page(admin_client, p=2))) == 3


def test_a_whole_number_is_found_by_an_index(world: World) -> None:
    write_as(world, OMAR, "Omar")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    with CaptureQueriesContext(connection) as asked:
        found = list(Chat.objects.filter(with_name("055-010-0101")))
    assert [chat.whatsapp_chat for chat in found] == [OMAR]
    assert "addresses_by_ending" in str(plans_of(asked))
    assert "client_name" not in asked.captured_queries[-1]["sql"].partition("WHERE")[2]


def test_names_are_text(admin_client: Client, world: World) -> None:
    write_as(world, OMAR, "<b>Omar</b>")
    assert "<b>" not in rows(page(admin_client))[0]
