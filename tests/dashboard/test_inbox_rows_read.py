"""What the inbox reads: the few conversations that need a person, not all that there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.inbox.chat_list import Wanted, chats_wanted
from sessions_app.inbox.needs import conversations_count, needs_you
from sessions_app.models import Chat, ChatActivity, ChatPause, ReviewedMark, Snooze, Turn
from tests.plans import rows_read
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
INBOX = "/admin/sessions_app/chat/"


@pytest.fixture(autouse=True)
def without_dead_rows(db: None) -> None:
    """What earlier tests wrote and took back is still in the indexes, and would be counted."""
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE sessions_app_chat CASCADE")


def quiet_chats(number: int) -> None:
    """Chats in which nothing is wrong, reviewed to their end."""
    now = timezone.now() - timedelta(days=1)
    chats = [Chat(whatsapp_chat=f"1777{n:07d}@c.us", provider="cloud") for n in range(number)]
    Chat.objects.bulk_create(chats)
    ChatActivity.objects.bulk_create(ChatActivity(chat=chat, last_at=now) for chat in chats)
    ReviewedMark.objects.bulk_create(
        ReviewedMark(chat=chat, reviewed_at=now, began_at=now, session_key=chat.pk, order_num=1)
        for chat in chats
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


@contextmanager
def by_indexes() -> Iterator[CaptureQueriesContext]:
    """Small tables are read from end to end otherwise."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('enable_seqscan', 'off', false)")
        cursor.execute("SELECT set_config('enable_mergejoin', 'off', false)")
    with CaptureQueriesContext(connection) as queries:
        yield queries


def in_need(world: World) -> set[str]:
    """One chat with a failed answer, one that is paused and where somebody wrote."""
    world.say(CLIENT, "one")
    world.say(OTHER_CLIENT, "two")
    Turn.objects.filter(chat=world.chat(CLIENT)).update(state="failed", finished_at=timezone.now())
    ChatPause.objects.create(chat=world.chat(OTHER_CLIENT))
    world.say(OTHER_CLIENT, "three")
    return {CLIENT, OTHER_CLIENT}


@pytest.mark.parametrize("state", ["", "open", "reviewed"])
def test_the_chats_in_need_are_found_without_reading_the_others(world: World, state: str) -> None:
    expected = in_need(world)
    # More than PostgreSQL expects in tables that were always empty.
    quiet_chats(3000)
    user = User.objects.create_user("dana")
    wanted = Wanted(needs=True, state=state)
    with by_indexes() as queries:
        found = chats_wanted(wanted, user, memory_default=True, today=timezone.now().date())
        names = set(found.values_list("whatsapp_chat", flat=True))
    assert names == (set() if state == "reviewed" else expected)
    assert rows_read(queries) < 200


def test_each_reason_counts_and_a_snooze_in_force_hides_it(world: World) -> None:
    def names() -> set[str]:
        found = Chat.objects.filter(needs_you())
        assert conversations_count() == found.count()
        return set(found.values_list("whatsapp_chat", flat=True))

    assert in_need(world) == names()
    user = User.objects.create_user("dana")
    now = timezone.now()
    snooze = {"since": now, "until": now + timedelta(hours=1), "snoozed_by": user}
    for chat in (CLIENT, OTHER_CLIENT):
        Snooze.objects.create(chat=world.chat(chat), **snooze)
    assert names() == set()
    # The person writes, or the time is over.
    world.receive(message_from(CLIENT, "again"))
    assert names() == {CLIENT}
    Snooze.objects.update(until=now)
    assert names() == {CLIENT, OTHER_CLIENT}
    Snooze.objects.all().delete()
    for chat in (CLIENT, OTHER_CLIENT):
        last = world.messages(chat)[-1]
        ReviewedMark.objects.create(
            chat=world.chat(chat),
            reviewed_at=timezone.now(),
            began_at=last.session.created_at,
            session_key=last.session_id,
            order_num=last.order_num,
        )
    assert names() == set()


@pytest.mark.parametrize("state", ["", "open", "reviewed", "snoozed"])
def test_tabs_count_their_part_of_the_state(admin_client: Client, world: World, state: str) -> None:
    in_need(world)
    quiet_chats(60)
    me = User.objects.get(username="admin")
    chats = Chat.objects.filter(whatsapp_chat__startswith="1777").order_by("pk")
    now = timezone.now()
    for chat in chats[:3]:
        Snooze.objects.create(chat=chat, since=now, until=now + timedelta(days=1), snoozed_by=me)
    for chat in (*chats[2:5], world.chat(CLIENT)):
        admin_client.post(f"{INBOX}{chat.pk}/review/", {"do": "assign:me"})
    shown = admin_client.get(f"{INBOX}?state={state}").context["listing"].tabs
    counts = [tab.number for tab in shown]
    expected = {
        "": ["3", "56", "59", "2"],
        "open": ["1", "1", "2", "2"],
        "reviewed": ["2", "55", "57", "2"],
        "snoozed": ["1", "2", "3", "2"],
    }
    assert counts == expected[state]
