"""Tabs and states of the inbox: whose a conversation is, and whether it is open, snoozed or
reviewed."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Chat, ChatPause, Snooze, Turn
from tests.world import CLIENT, OTHER_CLIENT, World, message_from, new_world

pytestmark = pytest.mark.django_db
INBOX = "/admin/sessions_app/chat/"
MANY = f"{INBOX}review/"
LISTED = re.compile(r'<span class="chat-address quiet"><bdi dir="ltr">(.*?)</bdi>')
TAB = re.compile(
    r'<a href="([^"]*)"( aria-current="page")?>([\w ]+) <span class="tab-number">(.*?)<'
)


@pytest.fixture(scope="module")
def two(module_rows: None) -> None:
    world = new_world()
    for name in (CLIENT, OTHER_CLIENT):
        world.say(name, "hello")


@pytest.fixture
def chats(two: None, world: World) -> list[Chat]:
    """Two people, who have their answers."""
    return [world.chat(CLIENT), world.chat(OTHER_CLIENT)]


def listed(client: Client, query: str = "") -> list[str]:
    """The ids of the listed chats, which show their numbers."""
    numbers = LISTED.findall(client.get(INBOX + query).content.decode())
    return [f"{re.sub(r'[^0-9]', '', number)}@c.us" for number in numbers]


def tabs(client: Client, query: str = "") -> dict[str, str]:
    shown = client.get(INBOX + query).content.decode()
    return {title: number for _, _, title, number in TAB.findall(shown)}


def act(client: Client, chat: Chat, do: str, **data: Any) -> str:
    answer = client.post(f"{INBOX}{chat.pk}/review/", {"do": do, "next": INBOX, **data})
    assert answer.status_code == 302
    return client.get(answer["Location"]).content.decode()


def test_tabs_lead_to_their_part_and_count_it(admin_client: Client, chats: list[Chat]) -> None:
    act(admin_client, chats[0], "assign:me")
    Turn.objects.filter(chat=chats[1]).update(state="failed", finished_at=timezone.now())
    shown = admin_client.get(INBOX).content.decode()
    assert [(title, number) for _, _, title, number in TAB.findall(shown)] == [
        ("Mine", "1"),
        ("Unassigned", "1"),
        ("All", "2"),
        ("Needs attention", "1"),
    ]
    parts = [listed(admin_client, address) for address, _, _, _ in TAB.findall(shown)]
    assert parts == [[CLIENT], [OTHER_CLIENT], [OTHER_CLIENT, CLIENT], [OTHER_CLIENT]]
    here = [title for _, is_here, title, _ in TAB.findall(shown) if is_here]
    assert here == ["All"]
    mine = admin_client.get(f"{INBOX}?assigned=me").content.decode()
    assert [title for _, is_here, title, _ in TAB.findall(mine) if is_here] == ["Mine"]


def test_tabs_count_at_most_ninety_nine(admin_client: Client, world: World) -> None:
    for number in range(101):
        world.receive(message_from(f"1555020{number:04}@c.us", "hello"))
    assert tabs(admin_client)["All"] == "99+"


def test_open_and_reviewed_are_told_apart(
    admin_client: Client, world: World, chats: list[Chat]
) -> None:
    act(admin_client, chats[0], "reviewed")
    assert listed(admin_client, "?state=open") == [OTHER_CLIENT]
    assert listed(admin_client, "?state=reviewed") == [CLIENT]
    assert tabs(admin_client, "?state=reviewed")["All"] == "1"
    world.say(CLIENT, "one more thing")
    assert listed(admin_client, "?state=open") == [CLIENT, OTHER_CLIENT]
    assert listed(admin_client, "?state=reviewed") == []


def test_a_snoozed_conversation_leaves_the_inbox_until_its_time(
    admin_client: Client, chats: list[Chat]
) -> None:
    assert "1 conversation is snoozed until" in act(admin_client, chats[0], "snooze:1h")
    assert listed(admin_client) == [OTHER_CLIENT]
    assert listed(admin_client, "?state=open") == [OTHER_CLIENT]
    assert listed(admin_client, "?state=snoozed") == [CLIENT]
    assert tabs(admin_client) == {
        "Mine": "0",
        "Unassigned": "1",
        "All": "1",
        "Needs attention": "0",
    }
    # Who searches finds it, with its state.
    assert listed(admin_client, "?q=0123") == [CLIENT]
    assert "snoozed until" in admin_client.get(f"{INBOX}?q=0123").content.decode()
    Snooze.objects.update(until=timezone.now() - timedelta(seconds=1))
    assert listed(admin_client, "?state=open") == [OTHER_CLIENT, CLIENT]
    assert listed(admin_client, "?attention=1") == [CLIENT]
    # It is on the list until somebody is done with it.
    act(admin_client, chats[0], "reviewed")
    assert listed(admin_client, "?attention=1") == []
    assert listed(admin_client, "?state=reviewed") == [CLIENT]


def test_a_message_of_the_person_brings_it_back_and_an_answer_does_not(
    admin_client: Client, world: World, chats: list[Chat]
) -> None:
    world.receive(message_from(CLIENT, "I'll write again"))
    act(admin_client, chats[0], "snooze:week")
    world.work()
    assert listed(admin_client) == [OTHER_CLIENT]
    world.receive(message_from(CLIENT, "it is me"))
    assert listed(admin_client) == [CLIENT, OTHER_CLIENT]
    assert listed(admin_client, "?state=snoozed") == []


def test_a_reviewed_conversation_that_is_snoozed_comes_back_open(
    admin_client: Client, chats: list[Chat]
) -> None:
    act(admin_client, chats[0], "reviewed")
    act(admin_client, chats[0], "snooze:1h")
    assert listed(admin_client, "?state=reviewed") == []
    Snooze.objects.update(until=timezone.now() - timedelta(seconds=1))
    assert CLIENT in listed(admin_client, "?state=open")
    page = admin_client.get(f"{INBOX}{chats[0].pk}/conversation/").content.decode()
    assert '<span class="state good">reviewed</span>' not in page


def test_what_came_in_after_the_page_was_made_was_not_put_off(
    admin_client: Client, world: World, chats: list[Chat]
) -> None:
    page = admin_client.get(INBOX).content.decode()
    made = re.search(r'name="made" value="([^"]+)"', page)
    assert made is not None
    world.receive(message_from(CLIENT, "wait"))
    data = {"do": "snooze:4h", "made": made[1], "_selected_action": [each.pk for each in chats]}
    admin_client.post(MANY, data)
    assert Snooze.objects.count() == 2
    assert listed(admin_client) == [CLIENT]


def test_a_snoozed_failure_needs_nobody_until_then(admin_client: Client, chats: list[Chat]) -> None:
    Turn.objects.filter(chat=chats[0]).update(state="failed", finished_at=timezone.now())
    ChatPause.objects.create(chat=chats[1])
    assert listed(admin_client, "?attention=1") == [OTHER_CLIENT, CLIENT]
    for chat in chats:
        act(admin_client, chat, "snooze:morning")
    assert listed(admin_client, "?attention=1") == []


def test_it_is_brought_back_by_hand(admin_client: Client, chats: list[Chat]) -> None:
    act(admin_client, chats[0], "snooze:1h")
    page = admin_client.get(f"{INBOX}{chats[0].pk}/conversation/").content.decode()
    assert "snoozed until" in page
    assert "is back in the inbox" in act(admin_client, chats[0], "unsnooze")
    assert listed(admin_client) == [OTHER_CLIENT, CLIENT]


def test_a_time_of_ones_own(admin_client: Client, settings: Any, chats: list[Chat]) -> None:
    tomorrow = timezone.localtime() + timedelta(days=1)
    act(admin_client, chats[0], "snooze:at", until=tomorrow.strftime("%Y-%m-%dT%H:%M"))
    assert timezone.localtime(Snooze.objects.get().until) == tomorrow.replace(
        second=0, microsecond=0
    )


@pytest.mark.parametrize(
    ("until", "reason"),
    [
        ("", "Say until when"),
        ("x", "That is no date with a time"),
        ("2020-01-01T10:00", "That time is over"),
        ("2999-01-01T10:00", "more than a year away"),
    ],
)
def test_a_time_that_is_none_snoozes_nothing(
    admin_client: Client, chats: list[Chat], until: str, reason: str
) -> None:
    assert reason in act(admin_client, chats[0], "snooze:at", until=until)
    assert not Snooze.objects.exists()


def test_both_are_audited_without_texts(admin_client: Client, chats: list[Chat]) -> None:
    act(admin_client, chats[0], "snooze:1h")
    act(admin_client, chats[0], "unsnooze")
    act(admin_client, chats[0], "unsnooze")
    events = AuditEvent.objects.filter(action__in=("chat.snooze", "chat.unsnooze")).order_by("id")
    assert [event.action for event in events] == ["chat.snooze", "chat.unsnooze"]
    assert list(events[0].details) == ["until"]


def test_only_reviewers_snooze(client: Client, chats: list[Chat]) -> None:
    user = User.objects.create_user("reader", is_staff=True)
    wanted = ("view_chat", "view_message")
    user.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    client.force_login(user)
    assert client.post(f"{INBOX}{chats[0].pk}/review/", {"do": "snooze:1h"}).status_code == 403
    data = {"do": "snooze:1h", "_selected_action": [chats[0].pk]}
    assert client.post(MANY, data).status_code == 403
    assert not Snooze.objects.exists()
    assert "snooze:" not in client.get(INBOX).content.decode()
    page = client.get(f"{INBOX}{chats[0].pk}/conversation/").content.decode()
    assert "snooze:" not in page
