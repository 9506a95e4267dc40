"""The page of a conversation: who may read it, what it shows, and that reading is on record."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.audit.models import AuditEvent
from memoryproject.integrations.whatsapp.events import (
    MessageEdited,
    MessageRevoked,
    Party,
    Reaction,
)
from sessions_app.models import Message, Turn
from tests.world import CLIENT, NUMBER_ID, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
HEBREW = "מה הקוד לדלת הכניסה?"


def address(world: World, whatsapp_chat: str = CLIENT) -> str:
    return f"/admin/sessions_app/chat/{world.chat(whatsapp_chat).pk}/conversation/"


def page(client: Client, path: str, **more: Any) -> str:
    answer = client.get(path, **more)
    assert answer.status_code == 200
    return answer.content.decode()


def texts(shown: str) -> list[str]:
    return re.findall(r'<p class="text" dir="auto">(.*?)</p>', shown, re.S)


def reads() -> int:
    return AuditEvent.objects.filter(action="conversation.read").count()


def test_all_sessions_stand_in_one_conversation(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Good morning")
    world.say(CLIENT, "/reset")
    world.say(CLIENT, HEBREW)
    world.say(OTHER_CLIENT, "somebody else's")
    shown = page(admin_client, address(world))
    said = texts(shown)
    assert said[:2] == ["Good morning", "answer to: Good morning"]
    assert said[-2:] == [HEBREW, f"answer to: {HEBREW}"]
    assert shown.count('<p class="border">') == 2
    assert "somebody else" not in shown


def test_reading_is_told_to_the_audit_log_and_a_look_without_news_is_not(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "Good morning")
    shown = page(admin_client, address(world))
    assert reads() == 1
    tag = re.search(r'data-tag="(.*?)"', shown)
    assert tag is not None
    live = {"X-Live": "yes", "If-None-Match": tag[1].replace("&quot;", '"')}
    assert admin_client.get(address(world), headers=live).status_code == 304
    assert reads() == 1
    world.say(CLIENT, "One more thing")
    answer = admin_client.get(address(world), headers=live)
    assert texts(answer.content.decode())[-1] == "answer to: One more thing"
    assert b"<html" not in answer.content
    assert reads() == 2
    live["If-None-Match"] = answer["ETag"]
    assert admin_client.get(address(world), headers=live).status_code == 304


@pytest.mark.parametrize("missing", ["view_chat", "view_message"])
def test_who_may_not_read_messages_reads_none(client: Client, world: World, missing: str) -> None:
    world.say(CLIENT, "Good morning")
    user = User.objects.create_user("half", is_staff=True)
    wanted = {"view_chat", "view_message"} - {missing}
    user.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    client.force_login(user)
    for headers in ({}, {"X-Live": "yes"}):
        answer = client.get(address(world), headers=headers)
        assert answer.status_code == 403
        assert b"Good morning" not in answer.content
    assert reads() == 0


def test_memories_and_cards_beside_it_are_for_those_who_may_see_them(
    client: Client, admin_client: Client, world: World
) -> None:
    world.remember(CLIENT, "TestCorp pays in 30 days")
    assert "Memories from here" in page(admin_client, address(world))
    user = User.objects.create_user("reader", is_staff=True)
    codenames = ["view_chat", "view_message"]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    shown = page(client, address(world))
    assert "Memories from here" not in shown
    assert "<h3>Cards</h3>" not in shown


def test_visitors_are_asked_to_log_in(client: Client, world: World) -> None:
    world.say(CLIENT, "Good morning")
    answer = client.get(address(world))
    assert answer.status_code == 302
    assert "/admin/login/" in answer["Location"]


def test_what_became_of_a_message_is_shown(admin_client: Client, world: World) -> None:
    edited = message_from(CLIENT, "green paper")
    gone = message_from(CLIENT, "never mind")
    quoting = message_from(CLIENT, "that one", reply_to_id=edited.provider_message_id)
    about = {"provider": "cloud", "number_id": NUMBER_ID, "party": edited.party}
    now = timezone.now()
    world.receive(
        edited,
        gone,
        quoting,
        MessageEdited(
            **about,
            delivery_key="e",
            original_id=edited.provider_message_id,
            text="red",
            timestamp=now,
        ),
        MessageRevoked(
            **about, delivery_key="r", original_id=gone.provider_message_id, timestamp=now
        ),
        Reaction(
            **about,
            delivery_key="a",
            target_id=quoting.provider_message_id,
            emoji="🙏",
            timestamp=now,
        ),
    )
    Turn.objects.filter(provider_message_id=quoting.provider_message_id).update(state="failed")
    shown = page(admin_client, address(world))
    assert texts(shown) == ["red", "green paper", "that one"]
    assert "deleted by the sender" in shown
    assert "never mind" not in shown
    assert "🙏" in shown
    assert "the answer failed" in shown
    assert re.search(r'class="quoted"><a href="\?at=[^"]*" dir="auto">red</a>', shown)


@pytest.mark.parametrize(
    ("status", "tick"), [("sent", "✓<"), ("delivered", "✓✓"), ("read", "✓✓"), ("failed", "!<")]
)
def test_ticks_say_how_far_an_answer_came(
    admin_client: Client, world: World, status: str, tick: str
) -> None:
    world.say(CLIENT, "Good morning")
    Message.objects.filter(role="assistant").update(delivery_status=status)
    shown = page(admin_client, address(world))
    assert re.search(f'aria-label="{status}" title="{status}">{tick}', shown)


def test_a_day_leads_to_its_first_message(
    admin_client: Client, world: World, settings: Any
) -> None:
    settings.BUSINESS_TIME_ZONE = "Asia/Jerusalem"
    world.say(CLIENT, "Good morning")
    first = world.messages(CLIENT)[0]
    # 22:30 UTC is half past midnight of the next day in Jerusalem.
    when = timezone.now().replace(hour=22, minute=30) - timedelta(days=3)
    Message.objects.filter(pk=first.pk).update(timestamp=when)
    day = (when + timedelta(hours=3)).date().isoformat()
    answer = admin_client.get(f"{address(world)}?date={day}")
    assert answer.status_code == 302
    assert answer["Location"] == f"{address(world)}?at={first.pk}#m-{first.pk}"
    assert f'id="m-{first.pk}" class="bubble in at"' in page(admin_client, answer["Location"])


@pytest.mark.parametrize(
    "query",
    [
        "at=x",
        "at=00000000-0000-4000-8000-000000000000",
        "before=",
        "after=%00",
        "date=2026-13-45",
        "date=x",
        "q=%00",
        "q=%25",
    ],
)
def test_what_makes_no_sense_shows_the_newest(
    admin_client: Client, world: World, query: str
) -> None:
    world.say(CLIENT, "Good morning")
    assert "Good morning" in page(admin_client, f"{address(world)}?{query}")


def test_words_are_found_with_a_way_to_their_place(admin_client: Client, world: World) -> None:
    world.say(CLIENT, HEBREW)
    shown = page(admin_client, f"{address(world)}?q=לדלת")
    first = world.messages(CLIENT)[0]
    assert f'href="?at={first.pk}#m-{first.pk}"' in shown
    assert "2 found." in shown
    assert "0 found." in page(admin_client, f"{address(world)}?q=unheard")


def test_html_and_directions_that_people_write_are_text(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "<script>alert(1)</script>\u202egnp.exe", party=_named("<b>x</b>"))
    shown = page(admin_client, f"{address(world)}?q=<script>")
    assert "<script>alert" not in shown
    assert "<b>x</b>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


def test_a_chat_that_is_not_there_is_404(admin_client: Client) -> None:
    assert admin_client.get(f"/admin/sessions_app/chat/{uuid4()}/conversation/").status_code == 404


def test_a_page_takes_as_many_queries_for_one_message_as_for_many(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "Good morning")
    counts = []
    for more in (1, 30):
        for number in range(more):
            world.say(CLIENT, f"question {number}")
        with CaptureQueriesContext(connection) as asked:
            page(admin_client, address(world))
        counts.append(len(asked))
    assert counts[0] == counts[1]
    assert counts[0] < 25


def _named(name: str) -> Party:
    return Party(phone=CLIENT.partition("@")[0], name=name)
