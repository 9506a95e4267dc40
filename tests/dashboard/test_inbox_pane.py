"""The list of the inbox beside a conversation: which one it is, for whom, and how it is renewed."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memoryproject.foundation.audit.models import AuditEvent
from tests.dashboard.staff import staff_with
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
INBOX = "/admin/sessions_app/chat/"


def conversation(client: Client, world: World, chat: str = CLIENT, *, filters: str = "") -> str:
    client.cookies["inbox-pane"] = quote(filters)
    answer = client.get(f"{INBOX}{world.chat(chat).pk}/conversation/")
    assert answer.status_code == 200
    return answer.content.decode()


def pane(shown: str) -> str:
    found = re.search(r'<section class="inbox-pane".*?</section>', shown, re.S)
    return found[0] if found else ""


def rows(part: str) -> list[str]:
    return re.findall(r'data-chat="([^"]*)">', part.partition("<ol")[2])


def test_a_wide_window_gets_the_list_with_the_open_conversation_in_it(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "hello")
    world.say(OTHER_CLIENT, "good evening")
    part = pane(conversation(admin_client, world))
    assert "answer to: good evening" in part
    row = re.search(r'<li class="chat[^"]*here".*?</li>', part, re.S)
    assert row is not None
    assert f'data-chat="{world.chat(CLIENT).pk}"' in row[0]
    assert part.count('aria-current="page"') == 2  # the tab, and the conversation
    # What the page itself shows now is no news in the list.
    assert "badge" not in row[0]
    # Nothing is ticked here, and links lead to the inbox, not to the conversation.
    assert "checkbox" not in part
    assert f'href="{INBOX}?assigned=me"' in part
    assert 'href="?' not in part


def test_other_windows_get_the_conversation_alone(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    shown = admin_client.get(f"{INBOX}{world.chat(CLIENT).pk}/conversation/").content.decode()
    assert pane(shown) == ""
    assert "inbox-pane" not in shown
    assert AuditEvent.objects.filter(action="conversation.read").count() == 1


def test_the_list_has_the_filters_of_the_one_that_was_open_last(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "hello")
    world.say(OTHER_CLIENT, "good evening")
    part = pane(conversation(admin_client, world, filters="q=0456&state=open"))
    assert rows(part) == [str(world.chat(OTHER_CLIENT).pk)]
    assert f'data-address="{INBOX}?q=0456&amp;state=open"' in part
    both = sorted(str(world.chat(chat).pk) for chat in (CLIENT, OTHER_CLIENT))
    for nonsense in ("state=x&p=99&label=z", "%00=%00&q=%00", "&&==", "x" * 9_000):
        assert sorted(rows(pane(conversation(admin_client, world, filters=nonsense)))) == both


def test_the_open_page_renews_the_list(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    part = pane(conversation(admin_client, world))
    tag = re.search(r'data-tag="&quot;(.*?)&quot;"', part)
    assert tag is not None
    live = {
        "X-Live": "pane",
        "X-Chat": str(world.chat(CLIENT).pk),
        "If-None-Match": f'"{tag[1]}"',
    }
    assert admin_client.get(INBOX, headers=live).status_code == 304
    world.receive(message_from(OTHER_CLIENT, "is it ready?"))
    answer = admin_client.get(INBOX, headers=live)
    shown = answer.content.decode()
    assert "is it ready?" in shown
    assert "checkbox" not in shown
    assert 'here"' in shown
    assert answer["X-Unread"] == "1"
    assert admin_client.get(INBOX, headers={**live, "X-Chat": "x"}).status_code == 200


def test_reading_the_list_is_audited(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    conversation(admin_client, world, filters="q=0123")
    reads = AuditEvent.objects.filter(action="conversation.read")
    assert {"list": "chat", "searched": True} in [event.details for event in reads]
    assert reads.count() == 2


def test_the_cookie_opens_nothing_to_who_may_not_read(world: World) -> None:
    world.say(CLIENT, "my secret")
    client = staff_with("sessions_app.view_chat")
    client.cookies["inbox-pane"] = ""
    answer = client.get(f"{INBOX}{world.chat(CLIENT).pk}/conversation/")
    assert answer.status_code == 403
    assert b"my secret" not in answer.content


def test_many_conversations_cost_no_more_queries_than_few(
    admin_client: Client, world: World
) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            conversation(admin_client, world)
        return len(queries)

    world.say(CLIENT, "hello")
    world.say(OTHER_CLIENT, "hello")
    asked()
    few = asked()
    for number in range(6):
        world.say(f"1555010020{number}@c.us", "hello")
    assert asked() == few
