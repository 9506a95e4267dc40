"""The page of a conversation: what it shows and finds, that reading is on record, what is unread,
and who else has it open."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.conversation_views.chat_pages import LASTS_SECONDS
from sessions_app.models import Label, Message, Note, Turn
from tests.dashboard.staff import page, staff_with
from tests.events import edit, reaction, revocation
from tests.shown import found_in
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db

HEBREW = "מה הקוד לדלת הכניסה?"
READS = ("sessions_app.view_chat", "sessions_app.view_message")
BORDER = 'Unread from here</span></p>\\s*<article id="m-{}"'


def address(world: World, rest: str = "conversation/", chat: str = CLIENT) -> str:
    return f"/admin/sessions_app/chat/{world.chat(chat).pk}/{rest}"


def texts(shown: str) -> list[str]:
    return re.findall(r'<p class="text[^>]*>(.*?)</p>', shown, re.S)


def live_headers(shown: str) -> dict[str, str]:
    """What the open page asks with."""
    tag = found_in(r'data-tag="(.*?)"', shown)
    headers = {"X-Live": "yes", "If-None-Match": tag.replace("&quot;", '"')}
    news = re.search(r'data-news="(.*?)"', shown)
    return {**headers, "X-News": news[1]} if news else headers


def reads() -> int:
    return AuditEvent.objects.filter(action="conversation.read").count()


def test_all_sessions_stand_in_one_conversation(admin_client: Client, world: World) -> None:
    world.remember(CLIENT, "TestCorp pays in 30 days")
    world.say(CLIENT, "/reset")
    world.say(CLIENT, HEBREW)
    world.say(OTHER_CLIENT, "somebody else's")
    shown = page(admin_client, address(world))
    assert texts(shown)[0] == "/remember TestCorp pays in 30 days"
    assert texts(shown)[-2:] == [HEBREW, f"answer to: {HEBREW}"]
    assert shown.count('<p class="session-border">') == 2
    assert "somebody else" not in shown
    # Memories and cards beside it are for those who may see them.
    reader = page(staff_with(*READS), address(world))
    for title in ("Memories about this client", "<h3>Cards</h3>"):
        assert (title in shown, title in reader) == (True, False)


def test_reading_is_audited_a_look_without_news_not(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Good morning")
    live = live_headers(page(admin_client, address(world)))
    assert reads() == 1
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
    assert len(queries) <= 16


def test_what_became_of_a_message_is_shown(admin_client: Client, world: World) -> None:
    edited, gone = message_from(CLIENT, "green paper"), message_from(CLIENT, "never mind")
    quoting = message_from(CLIENT, "that one", reply_to_id=edited.provider_message_id)
    world.receive(edited, gone, quoting)
    world.receive(
        edit(edited.provider_message_id, "red"),
        revocation(gone.provider_message_id),
        reaction(quoting.provider_message_id, "🙏"),
    )
    Turn.objects.filter(provider_message_id=quoting.provider_message_id).update(state="failed")
    shown = page(admin_client, address(world))
    assert texts(shown) == ["red", "green paper", "that one"]
    for text in ("deleted by the sender", "🙏", "the answer failed"):
        assert text in shown
    assert "never mind" not in shown
    assert re.search(r'class="quoted"><a href="\?at=[^"]*" dir="auto">red</a>', shown)


MARKDOWN = "**Cakes**, [all](https://cake.example)\n\n| Item | Price |\n| --- | --- |\n| Rye | 25 |"


def test_answers_are_shown_as_the_person_got_them(admin_client: Client, world: World) -> None:
    (sent,) = world.say(CLIENT, MARKDOWN)
    assert "*Cakes*" in sent
    assert "|" not in sent
    quoting = world.provider.sent[-1].provider_message_id
    (confirmed,) = world.say(CLIENT, "/remember **two** stars")
    world.say(CLIENT, "and that?", reply_to_id=quoting)
    shown = page(admin_client, address(world))
    assert [unescape(text) for text in texts(shown)][:4] == [
        MARKDOWN,
        sent,
        "/remember **two** stars",
        confirmed,
    ]
    quoted = found_in(r'class="quoted"><a href="[^"]*" dir="auto">(.*?)</a>', shown)
    assert unescape(quoted) == sent
    export = page(admin_client, f"/admin/contacts/{world.chat(CLIENT).pk}/export/")
    assert sent in [unescape(text) for text in texts(export)]


def test_what_a_program_got_is_shown_as_it_is(admin_client: Client, world: World) -> None:
    assert world.talk(MARKDOWN).reply == f"answer to: {MARKDOWN}"
    assert unescape(texts(page(admin_client, address(world)))[-1]) == f"answer to: {MARKDOWN}"


def test_ticks_say_how_far_an_answer_came(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Good morning")
    for status, tick in (("sent", "✓<"), ("delivered", "✓✓"), ("read", "✓✓"), ("failed", "!<")):
        Message.objects.filter(role="assistant").update(delivery_status=status)
        shown = page(admin_client, address(world))
        assert re.search(f'aria-label="{status}" title="{status}">{tick}', shown)


def test_day_leads_to_its_first_message(admin_client: Client, world: World, settings: Any) -> None:
    settings.BUSINESS_TIME_ZONE = "Asia/Jerusalem"
    world.say(CLIENT, "Good morning")
    first = world.messages(CLIENT)[0]
    # 22:30 UTC is half past midnight of the next day in Jerusalem.
    when = timezone.now().replace(hour=22, minute=30) - timedelta(days=3)
    Message.objects.filter(pk=first.pk).update(timestamp=when)
    day = (when + timedelta(hours=3)).date()
    answer = admin_client.get(address(world), {"date": day.isoformat()}, follow=True)
    assert answer.redirect_chain == [(f"{address(world)}?at={first.pk}#m-{first.pk}", 302)]
    assert re.search(f'id="m-{first.pk}" [^>]*class="bubble in at"', answer.content.decode())
    for other, told in (
        ("2020-02-02", "Nothing was said on that day: this came next."),
        (str(timezone.now().date() + timedelta(days=3)), "this is the end"),
    ):
        answer = admin_client.get(address(world), {"date": other}, follow=True)
        assert told in answer.content.decode()


def test_words_are_found_and_one_goes_from_hit_to_hit(admin_client: Client, world: World) -> None:
    for number in range(3):
        world.receive(message_from(CLIENT, f"door {number}"), message_from(CLIENT, "window"))
    first, second, third = [one.pk for one in world.messages(CLIENT) if "door" in one.content]
    for at, links in (
        ({}, {"before": third}),
        ({"at": second}, {"before": first, "after": third}),
        ({"at": first}, {"after": second}),
    ):
        shown = page(admin_client, address(world), q="doors", **at)
        found = re.findall(r'class="button hit-(before|after)" href="[^"]*at=([^"#]*)#', shown)
        assert dict(found) == {where: str(key) for where, key in links.items()}
        assert f"at={second}#m-{second}" in shown
        assert "3 hits." in shown
        assert "<mark>door</mark>" in shown
        assert ("This is no. 2." in shown) == (at.get("at") == second)
    assert "0 hits." in page(admin_client, address(world), q="unheard")


def test_what_is_unread_begins_at_a_border_until_seen(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "one")
    page(admin_client, address(world))
    world.say(CLIENT, "two")
    border = BORDER.format(world.messages(CLIENT)[2].pk)
    shown = page(admin_client, address(world))
    assert re.search(border, shown)
    # It stays where it was while the page is open, and is gone on the next visit.
    world.say(CLIENT, "three")
    live = admin_client.get(address(world), headers=live_headers(shown)).content.decode()
    assert re.search(border, live)
    assert "Unread from here" not in page(admin_client, address(world))
    # Where it is out of sight, it is a link away.
    first = message_from(CLIENT, "first")
    world.receive(first, *(message_from(CLIENT, f"message {number}") for number in range(59)))
    key = Message.objects.get(content="first").pk
    shown = page(admin_client, address(world))
    assert f'<a href="?at={key}#m-{key}">60 unread messages: go to the first' in shown


def test_notes_labels_and_assignee_stand_beside_it(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Good morning")
    chat, message = world.chat(CLIENT), world.messages(CLIENT)[0]
    client = staff_with(*READS, "sessions_app.review_chat")
    dana = User.objects.get(username="dana")
    note = {"message": message, "author": dana, "author_name": "r", "text": "call back"}
    Note.objects.create(chat=chat, **note, created_at=timezone.now())
    label = Label.objects.create(name="Urgent", colour="red")
    for do in (f"label:{label.pk}", "assign:me", "reviewed"):
        client.post(address(world, "review/"), {"do": do})
    shown = page(client, address(world))
    for text in ("call back", "Urgent", f'<option value="{dana.pk}" selected>'):
        assert text in shown
    assert 'class="state good">reviewed' in shown
    # Only its author changes a note.
    assert "Change or delete" in shown
    assert "Change or delete" not in page(admin_client, address(world))


def viewing(client: Client, world: World, chat: str = CLIENT) -> str:
    answer = client.get(address(world, "viewers/", chat), headers={"X-Live": "yes"})
    return str(answer.json()["text"])


def test_each_is_told_who_else_is_there(world: World) -> None:
    world.say(CLIENT, "hello")
    world.say(OTHER_CLIENT, "hello")
    dana, noa, ron = (staff_with(*READS, name=name) for name in ("dana", "noa", "ron"))
    assert viewing(dana, world) == ""
    assert viewing(dana, world) == ""
    assert viewing(noa, world) == "dana is viewing"
    assert viewing(ron, world) == "dana, noa are viewing"
    assert viewing(dana, world) == "noa, ron are viewing"
    assert viewing(dana, world, OTHER_CLIENT) == ""
    assert reads() == 0
    # Who has left is not told any more.
    key = f"viewers:{world.chat(CLIENT).pk}"
    there = cache.get(key)
    gone = {who: (name, at - LASTS_SECONDS) for who, (name, at) in there.items()}
    cache.set(key, gone, LASTS_SECONDS)
    assert viewing(noa, world) == ""
