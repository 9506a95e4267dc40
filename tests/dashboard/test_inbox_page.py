"""The inbox: what each row tells, its filters, its search, and what it costs."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.inbox.labels import chats_label
from sessions_app.models import Chat, ChatPause, Label, Message, Turn
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
INBOX = "/admin/sessions_app/chat/"
HEBREW = "מה הקוד לדלת הכניסה?"


def page(client: Client, query: str = "", **more: Any) -> str:
    answer = client.get(f"{INBOX}{query}", **more)
    assert answer.status_code == 200
    return answer.content.decode()


def rows(shown: str) -> list[str]:
    return re.findall(r'<li class="chat.*?</li>', shown, re.S)


def who(shown: str) -> list[str]:
    numbers = re.findall(r'<span class="chat-address quiet"><bdi dir="ltr">(.*?)</bdi>', shown)
    return [f"{re.sub(r'[^0-9]', '', number)}@c.us" for number in numbers]


def staff(*codenames: str) -> User:
    user = User.objects.create_user("reader", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user


def test_a_row_says_who_what_and_how_it_stands(admin_client: Client, world: World) -> None:
    world.say(CLIENT, HEBREW)
    world.say(OTHER_CLIENT, "hello")
    Message.objects.filter(role="assistant").update(delivery_status="read")
    Turn.objects.filter(chat=world.chat(CLIENT)).update(state="failed", finished_at=timezone.now())
    shown = page(admin_client)
    assert who(shown) == [OTHER_CLIENT, CLIENT]
    row = rows(shown)[1]
    assert "Test User" in row
    assert f"answer to: {HEBREW}" in row
    assert 'aria-label="read" title="read">✓✓' in row
    assert "1 answer failed" in row
    assert re.search(r'class="badge">1<', row)
    admin_client.get(f"{INBOX}{world.chat(CLIENT).pk}/conversation/")
    assert "badge" not in rows(page(admin_client))[1]


def test_what_is_no_text_is_told_by_a_word(admin_client: Client, world: World) -> None:
    world.receive(message_from(CLIENT, "", kind="voice"))
    assert "Voice message" in rows(page(admin_client))[0]
    Message.objects.update(revoked_at=timezone.now(), content="")
    assert "deleted by the sender" in rows(page(admin_client))[0]


def test_without_chats_it_says_how_it_fills(admin_client: Client) -> None:
    assert "Nobody has written yet." in page(admin_client)


def test_where_nothing_fits_it_says_so(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    assert "No conversation fits these filters." in page(admin_client, "?bookmarked=1")
    shown = page(admin_client, "?q=unheard")
    assert "No matching contact" in shown
    assert "Nobody has said that." in shown


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?unread=1", [OTHER_CLIENT, CLIENT]),
        ("?unreviewed=1&kind=person", [OTHER_CLIENT, CLIENT]),
        ("?kind=group", []),
        ("?provider=green", []),
        ("?memory=on", [OTHER_CLIENT, CLIENT]),
        ("?memory=off", []),
        ("?assigned=nobody", [OTHER_CLIENT, CLIENT]),
        ("?assigned=me", []),
        ("?failed=1", []),
        ("?q=0123", [CLIENT]),
    ],
)
def test_filters_narrow_it(
    admin_client: Client, world: World, settings: Any, query: str, found: list[str]
) -> None:
    settings.ENABLE_MEMORY_SYSTEM = True
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    assert who(page(admin_client, query)) == found


def test_a_paused_assistant_is_told(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    over = timezone.now() - timedelta(minutes=1)
    ChatPause.objects.create(chat=world.chat(CLIENT))
    ChatPause.objects.create(chat=world.chat(OTHER_CLIENT), until=over)
    assert who(page(admin_client, "?paused=1")) == [CLIENT]
    assert ["assistant paused" in row for row in rows(page(admin_client))] == [False, True]


def test_the_label_filter(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    label = Label.objects.create(name="Urgent", colour="red")
    chats_label(chat_ids=[world.chat(CLIENT).pk], label=label, actor=Actor("staff", "x"))
    shown = page(admin_client, f"?label={label.pk}")
    assert who(shown) == [CLIENT]
    assert '<bdi class="label red">Urgent</bdi>' in shown


@pytest.mark.parametrize(
    "query",
    [
        "?p=x",
        "?p=999999999999",
        "?p=-1",
        "?label=x",
        "?label=99999999999999999999",
        "?assigned=99999999999999999999",
        "?assigned=%00",
        "?provider=%00",
        "?hits=99999999999999",
        "?q=%00",
        "?q=%25_%5C",
        "?unknown__lookup=1",
        "?e=1",
    ],
)
def test_what_makes_no_sense_narrows_nothing(
    admin_client: Client, world: World, query: str
) -> None:
    world.say(CLIENT, "one")
    page(admin_client, query)


def test_what_was_said_is_found_with_a_way_to_it(admin_client: Client, world: World) -> None:
    world.receive(message_from(CLIENT, HEBREW), message_from(OTHER_CLIENT, "unlike that"))
    shown = page(admin_client, "?q=דלת")
    chat, message = world.chat(CLIENT), world.messages(CLIENT)[0]
    link = re.search(r'<a href="([^"]*)"><span class="hit-who">', shown)
    assert link is not None
    assert "<mark>לדלת</mark>" in shown
    address = link[1].replace("&amp;", "&")
    assert address.startswith(f"{INBOX}{chat.pk}/conversation/?q=")
    assert address.endswith(f"at={message.pk}#m-{message.pk}")
    there = admin_client.get(address).content.decode()
    assert re.search(f'id="m-{message.pk}" [^>]*class="bubble in at"', there)


@pytest.mark.parametrize("written", ["055-010-0101", "0550100101", "0101", "+972 55 010 0101"])
def test_a_number_is_found_as_it_is_written(
    admin_client: Client, world: World, written: str
) -> None:
    chat = "972550100101@c.us"
    party = Party(phone="972550100101", name="Omar")
    world.receive(message_from(chat, "shalom", party=party), message_from(CLIENT, "hello"))
    assert who(page(admin_client, "?" + urlencode({"q": written}))) == [chat]


def test_older_hits_are_a_link_away(admin_client: Client, world: World) -> None:
    world.receive(*(message_from(CLIENT, f"door {number}") for number in range(25)))
    shown = page(admin_client, "?q=door")
    assert shown.count("<mark>door</mark>") == 20
    assert 'href="?q=door&amp;hits=20#hits"' in shown
    assert page(admin_client, "?q=door&hits=20").count("<mark>door</mark>") == 5


def test_reading_the_list_is_told_to_the_audit_log_without_what_was_searched(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "hello")
    page(admin_client, "?q=secretword")
    event = AuditEvent.objects.get(action="conversation.read")
    assert event.details == {"list": "chat", "searched": True}


def test_who_may_not_read_messages_sees_none(client: Client, world: World) -> None:
    world.say(CLIENT, "my secret")
    client.force_login(staff("view_chat"))
    shown = page(client, "?q=secret")
    assert "my secret" not in shown
    assert "What was said" not in shown
    assert who(page(client)) == [CLIENT]
    assert "my secret" not in page(client)
    assert not AuditEvent.objects.filter(action="conversation.read").exists()


def test_the_list_is_for_those_who_may_see_chats(client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    assert client.get(INBOX).status_code == 302
    client.force_login(staff("view_message"))
    assert client.get(INBOX).status_code == 403


def test_who_may_not_review_is_offered_nothing_of_it(client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    client.force_login(staff("view_chat", "view_message"))
    shown = page(client)
    assert "_selected_action" not in shown
    assert 'name="do"' not in shown


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "\u202egnp.exe\u200b", "x" * 100_000]
)
def test_what_people_write_is_text(admin_client: Client, world: World, text: str) -> None:
    name = Party(phone=CLIENT.partition("@")[0], name=f"<b>{text[:200]}</b>")
    world.receive(message_from(CLIENT, text, party=name))
    shown = page(admin_client, "?q=" + text[:20])
    assert "<script>alert" not in shown
    assert "<b>" not in rows(page(admin_client))[0]
    assert len(page(admin_client)) < 60_000


def test_a_page_of_many_takes_as_many_queries_as_of_few(admin_client: Client, world: World) -> None:
    def make(first: int, count: int) -> None:
        for number in range(first, first + count):
            chat = f"1555010{number:04}@c.us"
            world.receive(message_from(chat, f"door {number}"))
            Turn.objects.filter(chat=world.chat(chat)).update(state="failed")

    make(0, 3)
    page(admin_client)
    counts = []
    for query in ("", "?q=door", "?unread=1&unreviewed=1&failed=1"):
        with CaptureQueriesContext(connection) as asked:
            page(admin_client, query)
        counts.append(len(asked))
    make(3, 57)
    for place, query in enumerate(("", "?q=door", "?unread=1&unreviewed=1&failed=1")):
        with CaptureQueriesContext(connection) as asked:
            page(admin_client, query)
        assert len(asked) == counts[place], query
    assert max(counts) < 30
    shown = page(admin_client)
    assert len(rows(shown)) == 50
    assert "1–50 of 60" in shown
    assert len(rows(page(admin_client, "?p=2"))) == 10
    assert Chat.objects.count() == 60


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Order AB-77120419 is on its way", "120419"),
        ("Order AB-77120419 is on its way", "ab-77"),
        ("שולחן לארבעה במסעדת הכרמלית", "רמלי"),
    ],
)
@pytest.mark.parametrize("address", [INBOX, "/admin/sessions_app/message/"])
def test_a_part_of_a_word_is_found_among_the_newest(
    world: World, admin_client: Client, said: str, asked: str, address: str
) -> None:
    world.receive(message_from(CLIENT, said), message_from(OTHER_CLIENT, "nothing of it"))
    shown = admin_client.get(address, {"q": asked}).content.decode()
    told = html.unescape(re.sub(r"</?mark>", "", shown.split('id="content"')[1]))
    assert said in told
    assert "nothing of it" not in told


def test_the_inbox_says_that_only_parts_of_words_fit(world: World, admin_client: Client) -> None:
    world.receive(message_from(CLIENT, "Order AB-77120419 is on its way"))
    assert "as a part of one" in page(admin_client, "?q=120419")
    assert "as a part of one" not in page(admin_client, "?q=order")
    assert "as a part of one" not in page(admin_client, "?q=zyqorvane")
