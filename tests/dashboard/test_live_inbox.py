"""The inbox that keeps itself up to date: its fragment, its version, its figures, and who sees
them."""

from __future__ import annotations

import html
import re

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.models import ChatPause, Message, Turn
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
INBOX = "/admin/sessions_app/chat/"


def opened(client: Client, query: str = "") -> tuple[str, dict[str, str]]:
    """The page, and the headers with which it asks for news."""
    shown = client.get(INBOX + query).content.decode()
    tag = re.search(r'data-tag="([^"]*)"', shown)
    assert tag is not None
    return shown, {"X-Live": "list", "If-None-Match": html.unescape(tag[1])}


def reads() -> int:
    return AuditEvent.objects.filter(action="conversation.read").count()


def in_menu(shown: str) -> str | None:
    """The number beside Inbox in the menu; None where none is displayed."""
    found = re.search(r'menu-count"( hidden)?><span class="menu-number">(.*?)<', shown)
    assert found is not None
    return None if found[1] else found[2]


def staff(client: Client, *codenames: str) -> None:
    user = User.objects.create_user("reader", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)


def test_without_news_there_is_nothing_to_send_and_nothing_is_audited(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "hello")
    _, live = opened(admin_client)
    assert reads() == 1
    answer = admin_client.get(INBOX, headers=live)
    assert answer.status_code == 304
    assert answer.content == b""
    assert reads() == 1


def test_a_new_message_is_sent_as_a_row_with_its_fields(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    _, live = opened(admin_client)
    world.receive(message_from(OTHER_CLIENT, "is it ready?"))
    answer = admin_client.get(INBOX, headers=live)
    shown = answer.content.decode()
    assert answer.status_code == 200
    assert "<html" not in shown
    assert shown.index("is it ready?") < shown.index("answer to: hello")
    message = Message.objects.get(content="is it ready?")
    assert f'name="seen-{message.chat_id}" value="{message.pk}"' in shown
    assert f'name="was-{message.chat_id}" value=""' in shown
    assert 'name="made"' in shown
    assert "1–2 of 2" in shown
    assert reads() == 2
    live["If-None-Match"] = answer["ETag"]
    assert admin_client.get(INBOX, headers=live).status_code == 304


def test_what_staff_and_whatsapp_change_is_news_too(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    chat = world.chat(CLIENT)
    for change in (
        lambda: Message.objects.filter(role="assistant").update(delivery_status="read"),
        lambda: ChatPause.objects.create(chat=chat),
        lambda: admin_client.post(f"{INBOX}{chat.pk}/review/", {"do": "assign:me"}),
        lambda: admin_client.post(f"{INBOX}{chat.pk}/review/", {"do": "bookmark"}),
        lambda: admin_client.post(f"{INBOX}{chat.pk}/review/", {"do": "reviewed"}),
        lambda: admin_client.get(f"{INBOX}{chat.pk}/conversation/"),
        lambda: chat.delete(),
    ):
        _, live = opened(admin_client)
        assert admin_client.get(INBOX, headers=live).status_code == 304
        change()
        assert admin_client.get(INBOX, headers=live).status_code == 200


def test_the_fragment_keeps_to_the_filters(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    _, live = opened(admin_client, "?q=0456")
    world.say(CLIENT, "again")
    assert admin_client.get(f"{INBOX}?q=0456", headers=live).status_code == 304
    world.say(OTHER_CLIENT, "me too")
    shown = admin_client.get(f"{INBOX}?q=0456", headers=live).content.decode()
    assert "answer to: me too" in shown
    assert "answer to: again" not in shown


def test_a_hidden_page_gets_figures_without_texts_and_audits_nothing(
    admin_client: Client, world: World
) -> None:
    world.receive(message_from(CLIENT, "one"), message_from(CLIENT, "two"))
    world.receive(message_from(OTHER_CLIENT, "three"))
    answer = admin_client.get(INBOX, headers={"X-Live": "figures"})
    assert answer.status_code == 204
    assert answer.content == b""
    assert (answer["X-Unread"], answer["X-News"], answer["X-Attention"]) == ("2", "3", "0")
    assert reads() == 0
    with CaptureQueriesContext(connection) as queries:
        admin_client.get(INBOX, headers={"X-Live": "figures"})
    # The chats, what is unread, what needs a person, and who asks.
    assert len(queries) <= 8
    assert not [
        query["sql"] for query in queries if '"sessions_app_message"."content"' in query["sql"]
    ]


def test_the_title_counts_the_conversations_with_something_unread(
    admin_client: Client, world: World
) -> None:
    world.receive(message_from(CLIENT, "one"), message_from(CLIENT, "two"))
    assert "<title>(1) Inbox" in opened(admin_client)[0]
    admin_client.get(f"{INBOX}{world.chat(CLIENT).pk}/conversation/")
    assert "<title>Inbox" in opened(admin_client)[0]


def test_the_menu_counts_what_needs_a_person_on_every_page(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    assert in_menu(admin_client.get("/admin/").content.decode()) is None
    ChatPause.objects.create(chat=world.chat(CLIENT))
    Turn.objects.filter(chat=world.chat(OTHER_CLIENT)).update(
        state="failed", finished_at=timezone.now()
    )
    for address in ("/admin/", INBOX, "/admin/sessions_app/turn/"):
        assert in_menu(admin_client.get(address).content.decode()) == "2"
    assert admin_client.get(INBOX, headers={"X-Live": "list"})["X-Attention"] == "2"
    for chat in (CLIENT, OTHER_CLIENT):
        admin_client.post(f"{INBOX}{world.chat(chat).pk}/review/", {"do": "reviewed"})
    assert in_menu(admin_client.get("/admin/").content.decode()) is None
    # The assistant is still paused there, so the next message waits for a person.
    world.receive(message_from(CLIENT, "three"))
    assert in_menu(admin_client.get("/admin/").content.decode()) == "1"


def test_who_may_not_read_messages_gets_rows_without_them(client: Client, world: World) -> None:
    world.say(CLIENT, "my secret")
    staff(client, "view_chat")
    answer = client.get(INBOX, headers={"X-Live": "list"})
    assert answer.status_code == 200
    assert number_shown(CLIENT) in answer.content.decode()
    assert b"my secret" not in answer.content
    assert reads() == 0


def test_the_list_ends_for_who_may_not_see_it(client: Client, world: World) -> None:
    world.say(CLIENT, "my secret")
    for live in ("list", "figures"):
        assert client.get(INBOX, headers={"X-Live": live}).status_code == 401
    staff(client, "view_message")
    for live in ("list", "figures"):
        answer = client.get(INBOX, headers={"X-Live": live})
        assert answer.status_code == 403
        assert b"my secret" not in answer.content
        assert "X-Unread" not in answer.headers
    assert "menu-count" not in client.get("/admin/").content.decode()
