"""The search in the head of every page: what it finds, in which writing, and for whom."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Message
from tests.dashboard.staff import staff_with
from tests.plans import plans_of
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from, write_as

pytestmark = pytest.mark.django_db
SEARCH = "/admin/search/"
OMAR = "972550100101@c.us"
TYPED = {"X-Search": "yes"}


def found(client: Client, words: str, **headers: str) -> str:
    answer = client.get(SEARCH, {"words": words}, headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def group(shown: str, title: str) -> str:
    """The part of a page with the hits of one kind; empty if there is none."""
    part = re.search(
        rf'<div class="search-group" role="group" aria-label="{title}">.*?</div>', shown, re.S
    )
    return part[0] if part else ""


def links(shown: str) -> list[str]:
    return re.findall(r'class="search-hit" href="([^"]*)"', shown)


@pytest.mark.parametrize(
    "written", ["055-010-0101", "0550100101", "+972 (0)55 010 0101", "0101", "oma", "OMAR"]
)
def test_a_person_is_found_by_name_and_by_number_as_people_write_it(
    admin_client: Client, world: World, written: str
) -> None:
    write_as(world, OMAR, "Omar")
    write_as(world, CLIENT, "Dana")
    people = group(found(admin_client, written), "Contacts")
    chat = world.chat(OMAR).pk
    assert links(people) == [reverse("admin:sessions_app_chat_conversation", args=[chat])]
    assert reverse("admin:contact", args=[chat]) in people
    assert '<bdi dir="ltr" class="quiet">' in people
    assert "+972 55-010-0101" in people
    assert "<mark>" in people


def test_messages_and_memories_are_found_by_their_words_in_any_script(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "Where is the lighthouse?")
    world.remember(GODFATHER, "The lighthouse is white")
    write_as(world, OTHER_CLIENT, "דנה", "איפה המגדלור הלבן?")
    english = found(admin_client, "lighthouses")
    message = Message.objects.get(content="Where is the lighthouse?")
    said, known = group(english, "Messages"), group(english, "Memories")
    assert any(f"at={message.pk}#m-{message.pk}" in link for link in links(said))
    assert "<mark>lighthouse</mark>" in said
    assert "The <mark>lighthouse</mark> is white" in known
    assert links(known)[0].startswith("/admin/memories_app/memory/")
    hebrew = group(found(admin_client, "מגדלור"), "Messages")
    assert "<mark>המגדלור</mark>" in hebrew
    assert 'dir="auto"' in hebrew
    assert "<bdi>דנה</bdi>" in hebrew


def test_part_of_a_word_is_found_where_no_word_is(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Order ZX-4711-Q, please")
    assert "as a part of one" in group(found(admin_client, "711-Q"), "Messages")


def test_the_box_gets_the_first_hits_alone_and_the_page_more(
    admin_client: Client, world: World
) -> None:
    for number in range(7):
        world.receive(message_from(CLIENT, f"lighthouse number {number}"))
    typed = found(admin_client, "lighthouse", **TYPED)
    assert "<html" not in typed
    assert len(links(group(typed, "Messages"))) == 5
    assert "/admin/sessions_app/chat/?q=lighthouse#hits" in typed
    # Kinds without hits take no room below the box.
    assert group(typed, "Memories") == ""
    page = found(admin_client, "lighthouse")
    assert "<html" in page
    assert len(links(group(page, "Messages"))) == 7
    assert "None." in group(page, "Memories")


def test_nothing_found_is_said(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    assert "Nothing matches" in found(admin_client, "zyqorvane")
    assert "Nothing matches" in found(admin_client, "zyqorvane", **TYPED)
    assert links(found(admin_client, "   ")) == []
    assert links(found(admin_client, "\x00")) == []


def test_texts_are_shown_as_they_were_written(admin_client: Client, world: World) -> None:
    write_as(world, OMAR, "<b>Omar</b>", "lighthouse <script>alert(1)</script>")
    for words in ("lighthouse", "<b>", "<script>"):
        shown = found(admin_client, words, **TYPED)
        assert "<script" not in shown
        assert "<b>" not in shown


@pytest.mark.parametrize(
    ("rights", "titles"),
    [
        (["sessions_app.view_chat"], ["Contacts"]),
        (["sessions_app.view_chat", "sessions_app.view_message"], ["Contacts", "Messages"]),
        (["memories_app.view_memory"], ["Memories"]),
        (["sessions_app.view_message", "memories_app.view_memory"], ["Memories"]),
    ],
)
def test_each_kind_is_found_by_those_who_may_see_it(
    world: World, rights: list[str], titles: list[str]
) -> None:
    write_as(world, OMAR, "Lighthouse keeper", "my lighthouse secret")
    world.remember(GODFATHER, "The lighthouse is white")
    client = staff_with(*rights)
    assert 'class="search-box"' in client.get("/admin/").content.decode()
    for headers in ({}, TYPED):
        shown = found(client, "lighthouse", **headers)
        there = [title for title in ("Contacts", "Messages", "Memories") if group(shown, title)]
        assert there == titles
        assert ("secret" in shown) == ("Messages" in titles)
        assert ("is white" in shown) == (titles != ["Contacts"])
    if titles == ["Contacts"]:
        # Who may not read the conversation comes to the contact's page.
        assert links(shown) == [reverse("admin:contact", args=[world.chat(OMAR).pk])]


def test_who_may_see_nothing_has_no_search(world: World) -> None:
    world.say(CLIENT, "my secret")
    client = staff_with("sessions_app.view_message")
    assert "search-box" not in client.get("/admin/").content.decode()
    assert client.get(SEARCH, {"words": "secret"}).status_code == 403
    assert client.get(SEARCH, {"words": "secret"}, headers=TYPED).status_code == 403
    out = Client().get(SEARCH, {"words": "secret"}, headers=TYPED)
    assert out.status_code == 302
    assert b"secret" not in out.content


def test_a_search_in_messages_is_audited_without_its_words(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "lighthouse")
    found(admin_client, "lighthouse", **TYPED)
    event = AuditEvent.objects.get(action="conversation.read")
    assert event.details == {"list": "global search", "searched": True}
    assert "lighthouse" not in str(AuditEvent.objects.values_list())
    found(staff_with("memories_app.view_memory"), "lighthouse")
    found(admin_client, "")
    assert AuditEvent.objects.filter(action="conversation.read").count() == 1


def test_many_hits_cost_no_more_queries_than_few(admin_client: Client, world: World) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            found(admin_client, "lighthouse")
        return len(queries)

    write_as(world, OMAR, "Lighthouse", "lighthouse")
    world.remember(GODFATHER, "One lighthouse")
    few = asked()
    for number in range(8):
        write_as(world, f"97255010020{number}@c.us", f"Lighthouse {number}", "lighthouse")
        world.remember(GODFATHER, f"Lighthouse number {number} is white")
    assert asked() == few


def test_words_are_looked_up_by_their_indexes(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "lighthouse")
    world.remember(GODFATHER, "The lighthouse is white")
    # Of few rows any index would do.
    session = world.messages(CLIENT)[0].session
    Message.objects.bulk_create(
        Message(
            session=session,
            chat_id=session.chat_id,
            order_num=number,
            role="user",
            content="hello",
            terms=["hello"],
            tokens=1,
            timestamp=session.created_at,
        )
        for number in range(100, 3_100)
    )
    with CaptureQueriesContext(connection) as queries:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE sessions_app_message")
            cursor.execute("SELECT set_config('enable_seqscan', 'off', false)")
        found(admin_client, "lighthouse")
    plans = str(plans_of(queries))
    assert "messages_by_word" in plans
    assert "memory_terms" in plans


def test_every_page_says_where_the_search_is(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    conversation = reverse("admin:sessions_app_chat_conversation", args=[world.chat(CLIENT).pk])
    for address in (
        "/admin/",
        "/admin/sessions_app/chat/",
        conversation,
        "/admin/audit/auditevent/",
    ):
        shown: Any = admin_client.get(address).content.decode()
        assert f'action="{SEARCH}"' in shown
        # One list of shortcuts on each page, and the search is in it.
        assert shown.count("<dt><kbd>/</kbd></dt>") == 1
