"""The inbox: what each row tells, its filters and its search; how the open list keeps itself up to
date, by itself and beside a conversation; and who sees what of it."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.inbox.labels import chats_label
from sessions_app.models import ChatPause, Label, Message, Turn
from tests.dashboard.staff import page, staff_with
from tests.shown import found_in
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db

INBOX = "/admin/sessions_app/chat/"
HEBREW = "מה הקוד לדלת הכניסה?"
SECRET = "my secret"


def rows(shown: str) -> list[str]:
    return re.findall(r'<li class="chat.*?</li>', shown, re.S)


def who(shown: str) -> list[str]:
    numbers = re.findall(r'<span class="chat-address quiet"><bdi dir="ltr">(.*?)</bdi>', shown)
    return [f"{re.sub(r'[^0-9]', '', number)}@c.us" for number in numbers]


def reads() -> list[dict[str, Any]]:
    events = AuditEvent.objects.filter(action="conversation.read").order_by("id")
    return [event.details for event in events]


def test_a_row_says_who_what_and_how_it_stands(admin_client: Client, world: World) -> None:
    assert "Nobody has written yet." in page(admin_client, INBOX)
    world.say(CLIENT, HEBREW)
    world.say(OTHER_CLIENT, "hello")
    Message.objects.filter(role="assistant").update(delivery_status="read")
    Turn.objects.filter(chat=world.chat(CLIENT)).update(state="failed", finished_at=timezone.now())
    shown = page(admin_client, INBOX)
    assert "<title>(2) Inbox" in shown
    assert who(shown) == [OTHER_CLIENT, CLIENT]
    for text in ("Test User", f"answer to: {HEBREW}", "1 answer failed"):
        assert text in rows(shown)[1]
    assert 'aria-label="read" title="read">✓✓' in rows(shown)[1]
    assert re.search(r'class="badge">1<', rows(shown)[1])
    page(admin_client, f"{INBOX}{world.chat(CLIENT).pk}/conversation/")
    assert "badge" not in rows(page(admin_client, INBOX))[1]
    # What is no text is told by a word.
    world.receive(message_from(CLIENT, "", kind="voice"))
    assert "Voice message" in rows(page(admin_client, INBOX))[0]
    Message.objects.update(revoked_at=timezone.now(), content="")
    assert "deleted by the sender" in rows(page(admin_client, INBOX))[0]


def test_filters_narrow_it(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    label = Label.objects.create(name="Urgent", colour="red")
    chats_label(chat_ids=[world.chat(CLIENT).pk], label=label, actor=Actor("staff", "x"))
    over = timezone.now() - timedelta(minutes=1)
    ChatPause.objects.create(chat=world.chat(CLIENT))
    ChatPause.objects.create(chat=world.chat(OTHER_CLIENT), until=over)
    both = [OTHER_CLIENT, CLIENT]
    for query, found in (
        ("unread=1", both),
        ("unreviewed=1&kind=person", both),
        ("kind=group", []),
        ("provider=green", []),
        ("memory=on", both),
        ("memory=off", []),
        ("assigned=nobody", both),
        ("assigned=me", []),
        ("failed=1", []),
        ("q=0123", [CLIENT]),
        ("paused=1", [CLIENT]),
        (f"label={label.pk}", [CLIENT]),
    ):
        assert who(page(admin_client, f"{INBOX}?{query}")) == found, query
    shown = page(admin_client, INBOX)
    assert ["assistant paused" in row for row in rows(shown)] == [False, True]
    assert '<bdi class="label red">Urgent</bdi>' in rows(shown)[1]
    assert "No conversation fits these filters." in page(admin_client, INBOX, bookmarked="1")
    shown = page(admin_client, INBOX, q="unheard")
    assert "No matching contact" in shown
    assert "Nobody has said that." in shown


def test_what_was_said_is_found_with_a_way_to_it(admin_client: Client, world: World) -> None:
    world.receive(message_from(CLIENT, HEBREW), message_from(OTHER_CLIENT, "unlike that"))
    shown = page(admin_client, INBOX, q="דלת")
    assert reads() == [{"list": "chat", "searched": True}], "without what was searched"
    chat, message = world.chat(CLIENT), world.messages(CLIENT)[0]
    link = found_in(r'<a href="([^"]*)"><span class="hit-who">', shown)
    assert "<mark>לדלת</mark>" in shown
    address = html.unescape(link)
    assert address.startswith(f"{INBOX}{chat.pk}/conversation/?q=")
    assert address.endswith(f"at={message.pk}#m-{message.pk}")
    there = page(admin_client, address.partition("#")[0])
    assert re.search(f'id="m-{message.pk}" [^>]*class="bubble in at"', there)
    world.receive(*(message_from(CLIENT, f"door {number}") for number in range(25)))
    shown = page(admin_client, INBOX, q="door")
    assert shown.count("<mark>door</mark>") == 20
    assert 'href="?q=door&amp;hits=20#hits"' in shown
    assert page(admin_client, f"{INBOX}?q=door&hits=20").count("<mark>door</mark>") == 5


def test_a_part_of_a_word_is_found_among_the_newest(admin_client: Client, world: World) -> None:
    order, table = "Order AB-77120419 is on its way", "שולחן לארבעה במסעדת הכרמלית"
    world.receive(*(message_from(CLIENT, text) for text in (order, table, "nothing of it")))
    for said, asked in ((order, "120419"), (order, "ab-77"), (table, "רמלי")):
        for address in (INBOX, "/admin/sessions_app/message/"):
            shown = page(admin_client, address, q=asked).split('id="content"')[1]
            told = html.unescape(re.sub(r"</?mark>", "", shown))
            assert (said in told, "nothing of it" in told) == (True, False)
    assert "as a part of one" in page(admin_client, INBOX, q="120419")
    assert "as a part of one" not in page(admin_client, INBOX, q="order")


def test_who_may_not_read_messages_sees_none(world: World) -> None:
    world.say(CLIENT, SECRET)
    client = staff_with("sessions_app.view_chat")
    assert "What was said" not in page(client, INBOX, q="secret")
    conversation = f"{INBOX}{world.chat(CLIENT).pk}/conversation/"
    client.cookies["inbox-pane"] = ""
    for address, headers in (
        (f"{INBOX}?q=secret", {}),
        (INBOX, {}),
        (INBOX, {"X-Live": "list"}),
        (INBOX, {"X-Live": "pane", "X-Chat": str(world.chat(CLIENT).pk)}),
        (conversation, {}),
    ):
        answer = client.get(address, headers=headers)
        assert answer.status_code == (403 if address == conversation else 200)
        assert SECRET.encode() not in answer.content
    assert reads() == []


# The open list


def opened(client: Client, query: str = "") -> dict[str, str]:
    """The headers with which the opened page asks for news."""
    tag = found_in(r'data-tag="([^"]*)"', page(client, INBOX + query))
    return {"X-Live": "list", "If-None-Match": html.unescape(tag)}


def in_menu(client: Client, address: str = "/admin/") -> str | None:
    """The number beside Inbox in the menu; None where none is displayed."""
    number = r'menu-count"( hidden)?><span class="menu-number">(.*?)<'
    found = re.search(number, page(client, address))
    assert found is not None
    return None if found[1] else found[2]


def test_news_come_as_rows_and_no_news_are_not_audited(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    live = opened(admin_client)
    answer = admin_client.get(INBOX, headers=live)
    assert (answer.status_code, answer.content, len(reads())) == (304, b"", 1)
    world.receive(message_from(OTHER_CLIENT, "is it ready?"))
    answer = admin_client.get(INBOX, headers=live)
    shown = answer.content.decode()
    assert "<html" not in shown
    assert shown.index("is it ready?") < shown.index("answer to: hello")
    message = Message.objects.get(content="is it ready?")
    assert f'name="seen-{message.chat_id}" value="{message.pk}"' in shown
    assert f'name="was-{message.chat_id}" value=""' in shown
    assert 'name="made"' in shown
    assert "1–2 of 2" in shown
    assert len(reads()) == 2
    live["If-None-Match"] = answer["ETag"]
    assert admin_client.get(INBOX, headers=live).status_code == 304
    # It keeps to the filters.
    world.work()
    live = opened(admin_client, "?q=0456")
    world.say(CLIENT, "again")
    assert admin_client.get(f"{INBOX}?q=0456", headers=live).status_code == 304
    world.say(OTHER_CLIENT, "me too")
    shown = admin_client.get(f"{INBOX}?q=0456", headers=live).content.decode()
    assert ("answer to: me too" in shown, "answer to: again" in shown) == (True, False)


def test_what_staff_and_whatsapp_change_is_news_too(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    chat = world.chat(CLIENT)
    review = f"{INBOX}{chat.pk}/review/"
    for change in (
        lambda: Message.objects.filter(role="assistant").update(delivery_status="read"),
        lambda: ChatPause.objects.create(chat=chat),
        lambda: admin_client.post(review, {"do": "assign:me"}),
        lambda: admin_client.post(review, {"do": "bookmark"}),
        lambda: admin_client.post(review, {"do": "reviewed"}),
        lambda: admin_client.get(f"{INBOX}{chat.pk}/conversation/"),
        lambda: chat.delete(),
    ):
        live = opened(admin_client)
        assert admin_client.get(INBOX, headers=live).status_code == 304
        change()
        assert admin_client.get(INBOX, headers=live).status_code == 200


def test_a_hidden_page_gets_figures_and_audits_nothing(admin_client: Client, world: World) -> None:
    world.receive(message_from(CLIENT, "one"), message_from(CLIENT, "two"))
    world.receive(message_from(OTHER_CLIENT, "three"))
    with CaptureQueriesContext(connection) as queries:
        answer = admin_client.get(INBOX, headers={"X-Live": "figures"})
    assert (answer.status_code, answer.content, reads()) == (204, b"", [])
    assert (answer["X-Unread"], answer["X-News"], answer["X-Attention"]) == ("2", "3", "0")
    assert not [each for each in queries if '"sessions_app_message"."content"' in each["sql"]]


def test_menu_counts_what_needs_a_person_everywhere(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    assert in_menu(admin_client) is None
    ChatPause.objects.create(chat=world.chat(CLIENT))
    assert in_menu(admin_client) is None, "it was answered"
    world.say(CLIENT, "one more")
    failed = Turn.objects.filter(chat=world.chat(OTHER_CLIENT))
    failed.update(state="failed", finished_at=timezone.now())
    for address in ("/admin/", INBOX, "/admin/sessions_app/turn/"):
        assert in_menu(admin_client, address) == "2"
    assert admin_client.get(INBOX, headers={"X-Live": "list"})["X-Attention"] == "2"
    for chat in (CLIENT, OTHER_CLIENT):
        admin_client.post(f"{INBOX}{world.chat(chat).pk}/review/", {"do": "reviewed"})
    assert in_menu(admin_client) is None
    # The assistant is still paused there, so the next message waits for a person.
    world.receive(message_from(CLIENT, "three"))
    assert in_menu(admin_client) == "1"
    assert "menu-count" not in page(staff_with("sessions_app.view_message"), "/admin/")


# Beside a conversation


def pane(client: Client, world: World, filters: str | None = "") -> str:
    if filters is not None:
        client.cookies["inbox-pane"] = quote(filters)
    shown = page(client, f"{INBOX}{world.chat(CLIENT).pk}/conversation/")
    found = re.search(r'<section class="inbox-pane".*?</section>', shown, re.S)
    return found[0] if found else ""


def listed(part: str) -> set[str]:
    return set(re.findall(r'data-chat="([^"]*)">', part.partition("<ol")[2]))


def test_a_wide_window_gets_the_list_beside_it(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    world.say(OTHER_CLIENT, "good evening")
    assert pane(admin_client, world, None) == "", "other windows get the conversation alone"
    assert len(reads()) == 1
    part = pane(admin_client, world)
    assert "answer to: good evening" in part
    row = found_in(r'<li class="chat[^"]*here".*?</li>', part)
    assert f'data-chat="{world.chat(CLIENT).pk}"' in row
    assert part.count('aria-current="page"') == 2  # the tab, and the conversation
    # What the page itself shows now is no news in the list.
    assert "badge" not in row
    # Nothing is ticked here, and links lead to the inbox, not to the conversation.
    assert "checkbox" not in part
    assert f'href="{INBOX}?assigned=me"' in part
    assert 'href="?' not in part
    # It has the filters of the one that was open last.
    part = pane(admin_client, world, "q=0456&state=open")
    assert listed(part) == {str(world.chat(OTHER_CLIENT).pk)}
    assert f'data-address="{INBOX}?q=0456&amp;state=open"' in part
    assert {"list": "chat", "searched": True} in reads()
    both = {str(world.chat(chat).pk) for chat in (CLIENT, OTHER_CLIENT)}
    for nonsense in ("state=x&p=99&label=z", "%00=%00&q=%00", "&&==", "x" * 9_000):
        assert listed(pane(admin_client, world, nonsense)) == both


def test_the_open_page_renews_the_list(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    tag = found_in(r'data-tag="&quot;(.*?)&quot;"', pane(admin_client, world))
    live = {"X-Live": "pane", "X-Chat": str(world.chat(CLIENT).pk)}
    live["If-None-Match"] = f'"{tag}"'
    assert admin_client.get(INBOX, headers=live).status_code == 304
    world.receive(message_from(OTHER_CLIENT, "is it ready?"))
    answer = admin_client.get(INBOX, headers=live)
    shown = answer.content.decode()
    assert "is it ready?" in shown
    assert ("checkbox" in shown, 'here"' in shown) == (False, True)
    assert answer["X-Unread"] == "1"
    assert admin_client.get(INBOX, headers={**live, "X-Chat": "x"}).status_code == 200
