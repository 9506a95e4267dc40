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

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.whatsapp.events import (
    MessageEdited,
    MessageRevoked,
    Party,
    Reaction,
)
from sessions_app.models import Label, Message, Note, ReadMark, Turn
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
    return re.findall(r'<p class="text[^>]*>(.*?)</p>', shown, re.S)


def live_headers(shown: str) -> dict[str, str]:
    """What the open page asks with."""
    tag = re.search(r'data-tag="(.*?)"', shown)
    assert tag is not None
    headers = {"X-Live": "yes", "If-None-Match": tag[1].replace("&quot;", '"')}
    news = re.search(r'data-news="(.*?)"', shown)
    return {**headers, "X-News": news[1]} if news else headers


def reader(*more: str) -> User:
    """One of the staff who may read, and whatever else is named."""
    user = User.objects.create_user("reader", is_staff=True)
    codenames = ["view_chat", "view_message", *more]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user


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
    assert shown.count('<p class="session-border">') == 2
    assert "somebody else" not in shown


def test_reading_is_told_to_the_audit_log_and_a_look_without_news_is_not(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "Good morning")
    shown = page(admin_client, address(world))
    assert reads() == 1
    live = live_headers(shown)
    assert admin_client.get(address(world), headers=live).status_code == 304
    assert reads() == 1
    world.say(CLIENT, "One more thing")
    answer = admin_client.get(address(world), headers=live)
    assert texts(answer.content.decode())[-1] == "answer to: One more thing"
    assert b"<html" not in answer.content
    assert reads() == 2
    live["If-None-Match"] = answer["ETag"]
    with CaptureQueriesContext(connection) as queries:
        assert admin_client.get(address(world), headers=live).status_code == 304
    assert len(queries) <= 13


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
    assert "Memories about this client" in page(admin_client, address(world))
    client.force_login(reader())
    shown = page(client, address(world))
    assert "Memories about this client" not in shown
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
    about: dict[str, Any] = {"provider": "cloud", "number_id": NUMBER_ID, "party": edited.party}
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
    shown = page(admin_client, answer["Location"])
    assert re.search(f'id="m-{first.pk}" [^>]*class="bubble in at"', shown)


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
    assert f"at={first.pk}#m-{first.pk}" in shown
    assert "2 hits." in shown
    assert "<mark>לדלת</mark>" in shown
    assert "0 hits." in page(admin_client, f"{address(world)}?q=unheard")


def test_a_word_is_found_in_another_form(admin_client: Client, world: World) -> None:
    world.receive(message_from(CLIENT, "The dishwashers are leaking"))
    shown = page(admin_client, f"{address(world)}?q=dishwasher leaks")
    assert "1 hit." in shown
    assert "<mark>dishwashers</mark>" in shown


def test_one_goes_from_hit_to_hit(admin_client: Client, world: World) -> None:
    for number in range(3):
        world.receive(message_from(CLIENT, f"door {number}"), message_from(CLIENT, "window"))
    first, second, third = [one.pk for one in world.messages(CLIENT) if "door" in one.content]
    shown = page(admin_client, f"{address(world)}?q=door")
    assert hit_links(shown) == {"before": str(third)}
    shown = page(admin_client, f"{address(world)}?q=door&at={second}")
    assert hit_links(shown) == {"before": str(first), "after": str(third)}
    assert "This is no. 2." in shown
    shown = page(admin_client, f"{address(world)}?q=door&at={first}")
    assert hit_links(shown) == {"after": str(second)}


def hit_links(shown: str) -> dict[str, str]:
    found = re.findall(r'class="button hit-(before|after)" href="[^"]*at=([^"#]*)#', shown)
    return dict(found)


def test_html_and_directions_that_people_write_are_text(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "<script>alert(1)</script>\u202egnp.exe", party=_named("<b>x</b>"))
    shown = page(admin_client, f"{address(world)}?q=<script>")
    assert "<script>alert" not in shown
    assert "<b>x</b>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


def test_a_chat_that_is_not_there_is_404(admin_client: Client) -> None:
    assert admin_client.get(f"/admin/sessions_app/chat/{uuid4()}/conversation/").status_code == 404


@pytest.mark.slow
def test_a_page_takes_as_many_queries_for_one_message_as_for_many(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "Good morning")
    page(admin_client, address(world))
    counts = []
    for more in (1, 10):
        for number in range(more):
            world.say(CLIENT, f"question {number}")
        with CaptureQueriesContext(connection) as asked:
            page(admin_client, address(world))
        counts.append(len(asked))
    assert counts[0] == counts[1]
    assert counts[0] < 45


def test_what_is_unread_begins_at_a_border_until_it_was_seen(
    admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "one")
    page(admin_client, address(world))
    world.say(CLIENT, "two")
    unread = world.messages(CLIENT)[2]
    shown = page(admin_client, address(world))
    assert re.search(f'Unread from here</span></p>\\s*<article id="m-{unread.pk}"', shown)
    # It stays where it was while the page is open, and is gone on the next visit.
    world.say(CLIENT, "three")
    live = admin_client.get(address(world), headers=live_headers(shown)).content.decode()
    assert re.search(f'Unread from here</span></p>\\s*<article id="m-{unread.pk}"', live)
    assert "Unread from here" not in page(admin_client, address(world))


def test_unread_messages_out_of_sight_are_a_link_away(admin_client: Client, world: World) -> None:
    world.receive(*(message_from(CLIENT, f"message {number}") for number in range(60)))
    first = world.messages(CLIENT)[0]
    shown = page(admin_client, address(world))
    assert f'<a href="?at={first.pk}#m-{first.pk}">60 unread messages: go to the first' in shown


def test_looking_at_an_old_place_leaves_the_newest_unread(
    admin_client: Client, world: World
) -> None:
    world.receive(*(message_from(CLIENT, f"message {number}") for number in range(60)))
    page(admin_client, f"{address(world)}?at={world.messages(CLIENT)[0].pk}")
    assert not ReadMark.objects.exists()
    page(admin_client, address(world))
    assert ReadMark.objects.get().order_num == 60


def test_kinds_of_media_are_told_by_a_word(admin_client: Client, world: World) -> None:
    world.receive(message_from(CLIENT, "", kind="voice"), message_from(CLIENT, "Bon", kind="odd"))
    shown = page(admin_client, address(world))
    assert "Voice message" in shown
    assert re.search(r'class="kind">.*</span> odd ', shown)


def test_notes_labels_and_who_looks_after_it_stand_beside_it(
    client: Client, admin_client: Client, world: World
) -> None:
    world.say(CLIENT, "Good morning")
    chat, message = world.chat(CLIENT), world.messages(CLIENT)[0]
    user = reader("review_chat")
    hostile = "<script>alert(1)</script>\u202e" + "x" * 5_000
    Note.objects.create(
        chat=chat, message=message, author=user, author_name="r", text=hostile,
        created_at=timezone.now(),
    )  # fmt: skip
    label = Label.objects.create(name="<i>Urgent</i>", colour="red")
    client.force_login(user)
    for do in (f"label:{label.pk}", "assign:me", "reviewed"):
        client.post(f"/admin/sessions_app/chat/{chat.pk}/review/", {"do": do})
    shown = page(client, address(world))
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert "<i>Urgent" not in shown
    assert "&lt;i&gt;Urgent" in shown
    assert f'<option value="{user.pk}" selected>' in shown
    assert 'class="state good">reviewed' in shown
    assert "Change or delete" in shown
    assert "Change or delete" not in page(admin_client, address(world))


def test_who_may_not_review_is_offered_nothing_of_it(client: Client, world: World) -> None:
    world.say(CLIENT, "Good morning")
    client.force_login(reader())
    shown = page(client, address(world))
    talk = shown.partition('class="conversation"')[2]
    assert "not reviewed" in talk
    assert 'method="post"' not in talk
    assert "<textarea" not in talk


def test_nothing_on_the_page_runs_in_it(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Good morning")
    shown = page(admin_client, address(world))
    assert not re.search(r"<script(?![^>]*src=)", shown)
    assert not re.search(r"\son[a-z]+=", shown)


def _named(name: str) -> Party:
    return Party(phone=CLIENT.partition("@")[0], name=name)


def test_a_day_on_which_nothing_was_said_says_so(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Good morning")
    today = timezone.now().date()

    def told(day: str) -> str:
        return admin_client.get(f"{address(world)}?date={day}", follow=True).content.decode()

    assert "Nothing was said on that day: this came next." in told("2020-02-02")
    assert "this is the end" in told(str(today + timedelta(days=2)))
    assert "Nothing was said" not in told(str(today))
