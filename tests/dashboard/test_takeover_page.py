"""The panel by which staff take a chat over, and what it posts."""

from __future__ import annotations

import html
import re
import uuid
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import ChatPause, Message, Turn
from tests.dashboard.staff import staff_with
from tests.shown import messages_of
from tests.world import CLIENT, World, message_from, new_world

pytestmark = pytest.mark.django_db
RIGHTS = ("sessions_app.view_chat", "sessions_app.view_message", "sessions_app.takeover_chat")
POSTS = {
    "pause/": {"lasts": "1h"},
    "resume/": {},
    "reply/": {"text": "Hello", "key": "00000000-0000-4000-8000-000000000001"},
    "template/": {
        "name": "hello_world",
        "language": "en_US",
        "key": "00000000-0000-4000-8000-000000000002",
    },
}


@pytest.fixture(autouse=True)
def memory_on(settings: Any) -> None:
    settings.ENABLE_MEMORY_SYSTEM = True


@pytest.fixture(scope="module")
def said_hi(module_rows: None) -> None:
    new_world().say(CLIENT, "Hi")


@pytest.fixture
def told(said_hi: None, world: World) -> World:
    return world


def address(world: World, rest: str = "") -> str:
    return f"/admin/sessions_app/turn/takeover/{world.chat(CLIENT).pk}/{rest}"


def conversation(world: World) -> str:
    return f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/"


def panel(client: Client, world: World) -> str:
    answer = client.get(conversation(world))
    assert answer.status_code == 200
    found = re.search(r'<section id="takeover".*?</section>', answer.content.decode(), re.S)
    return found[0] if found else ""


def key_of(shown: str) -> str:
    found = re.search(r'name="key" value="([0-9a-f-]{36})"', shown)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(("lasts", "hours"), [("1h", 1), ("8h", 8)])
def test_paused_for_some_hours(admin_client: Client, told: World, lasts: str, hours: int) -> None:
    before = timezone.now()
    answer = admin_client.post(address(told, "pause/"), {"lasts": lasts}, follow=True)
    assert messages_of(answer)[0].startswith("The assistant is paused until ")
    until = ChatPause.objects.get().until
    assert until is not None
    wanted = timedelta(hours=hours)
    assert before + wanted <= until <= timezone.now() + wanted
    assert "The assistant is paused" in panel(admin_client, told)


def test_until_tomorrow_morning_goes_by_the_businesss_clock(
    admin_client: Client, told: World, settings: Any
) -> None:
    settings.BUSINESS_TIME_ZONE = "Asia/Jerusalem"
    admin_client.post(address(told, "pause/"), {"lasts": "morning"})
    until = ChatPause.objects.get().until
    assert until is not None
    local = until.astimezone(ZoneInfo("Asia/Jerusalem"))
    today = timezone.now().astimezone(ZoneInfo("Asia/Jerusalem")).date()
    assert (local.hour, local.minute) == (8, 0)
    assert local.date() == today + timedelta(days=1)


def test_until_a_given_time(admin_client: Client, told: World, settings: Any) -> None:
    settings.BUSINESS_TIME_ZONE = "Asia/Jerusalem"
    zone = ZoneInfo("Asia/Jerusalem")
    at = (timezone.now().astimezone(zone) + timedelta(days=3)).replace(second=0, microsecond=0)
    form = {"lasts": "at", "until": at.strftime("%Y-%m-%dT%H:%M")}
    admin_client.post(address(told, "pause/"), form)
    assert ChatPause.objects.get().until == at


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"lasts": "9h"},
        {"lasts": "at"},
        {"lasts": "at", "until": "soon"},
        {"lasts": "at", "until": "2020-01-01T10:00"},
        {"lasts": "at", "until": "9999-12-31T23:59"},
        {"lasts": "at", "until": "2026-02-30T10:00"},
        {"lasts": "at", "until": "\x00"},
    ],
)
def test_a_wrong_time_is_told_and_pauses_nothing(
    admin_client: Client, told: World, form: dict[str, str]
) -> None:
    answer = admin_client.post(address(told, "pause/"), form)
    assert answer.status_code == 422
    assert b'class="problem"' in answer.content
    assert not ChatPause.objects.exists()


def test_handed_back_with_the_choice_to_answer_the_last_message(
    admin_client: Client, told: World
) -> None:
    admin_client.post(address(told, "pause/"), {"lasts": "open"})
    assert 'value="last"' not in panel(admin_client, told)
    told.say(CLIENT, "Are you there?")
    shown = panel(admin_client, told)
    assert "1 message came in meanwhile" in shown
    assert 'value="last"' in shown
    answer = admin_client.post(address(told, "resume/"), {"answer": "last"}, follow=True)
    assert messages_of(answer) == ["The assistant goes on, and answers the last message now."]
    told.work()
    assert told.provider.sent[-1].text == "answer to: Are you there?"
    answer = admin_client.post(address(told, "resume/"), follow=True)
    assert messages_of(answer) == ["The assistant wasn't paused here any more."]
    assert "Assistant is on" in panel(admin_client, told)


def test_a_reply_goes_out_once_however_often_it_is_posted(
    admin_client: Client, told: World
) -> None:
    shown = panel(admin_client, told)
    assert "Sending pauses the assistant for an hour." in shown
    form = {"text": "Hello\r\nfrom me", "key": key_of(shown)}
    answer = admin_client.post(address(told, "reply/"), form, follow=True)
    assert messages_of(answer)[0].startswith(
        "Your reply is on its way. The assistant is paused until"
    )
    answer = admin_client.post(address(told, "reply/"), form, follow=True)
    assert messages_of(answer) == ["This reply was sent already."]
    told.work()
    assert [part.text for part in told.provider.sent] == ["Hello\nfrom me"]
    author = User.objects.get(username="admin")
    assert Message.objects.latest("order_num").metadata["author_id"] == author.pk
    assert "Hello" in admin_client.get(conversation(told)).content.decode()
    actions = AuditEvent.objects.filter(action__startswith="takeover.").order_by("id")
    assert list(actions.values_list("action", "actor")) == [
        ("takeover.pause", "admin"),
        ("takeover.reply", "admin"),
    ]


def test_the_replay_of_a_reply_names_who_wrote_it(admin_client: Client, told: World) -> None:
    form = {"text": "Hello", "key": key_of(panel(admin_client, told))}
    admin_client.post(address(told, "reply/"), form)
    told.work()
    turn = Turn.objects.get(by_hand=True)
    change = f"/admin/sessions_app/turn/{turn.pk}/change/"
    assert "Written by <bdi>admin</bdi>" in admin_client.get(change).content.decode()
    User.objects.create_superuser("other", password="a-password")
    User.objects.get(username="admin").delete()
    admin_client.force_login(User.objects.get(username="other"))
    shown = admin_client.get(change).content.decode()
    assert "Written by <bdi>somebody of the staff</bdi>" in shown


def test_outside_the_window_it_is_refused_and_the_text_is_kept(
    admin_client: Client, told: World
) -> None:
    key = key_of(panel(admin_client, told))
    Message.objects.update(timestamp=timezone.now() - timedelta(hours=25))
    Turn.objects.update(asked_at=timezone.now() - timedelta(hours=25))
    shown = panel(admin_client, told)
    assert "window has been closed since" in shown
    assert 'id="takeover-text"' not in shown
    answer = admin_client.post(address(told, "reply/"), {"text": "My <b>words", "key": key})
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "My &lt;b&gt;words" in page
    assert "WhatsApp&#x27;s window is closed" in page
    assert not Turn.objects.filter(by_hand=True).exists()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("  ", "fresh"),
        ("x" * 20_001, "fresh"),
        ("Something else", "used"),
        ("Hello", ""),
        ("Hello", "no-key"),
        ("Hello\x00", "fresh"),
    ],
)
def test_what_is_refused_comes_back_in_a_new_form(
    admin_client: Client, told: World, text: str, key: str
) -> None:
    used = key_of(panel(admin_client, told))
    admin_client.post(address(told, "reply/"), {"text": "First", "key": used})
    keys = {"used": used, "fresh": str(uuid.uuid4())}
    answer = admin_client.post(address(told, "reply/"), {"text": text, "key": keys.get(key, key)})
    assert answer.status_code == 409
    page = answer.content.decode()
    assert key_of(page) not in (used, keys.get(key))
    assert html.escape(text.strip())[:200] in page
    assert Turn.objects.filter(by_hand=True).count() == 1


@pytest.mark.parametrize("rest", POSTS)
def test_nothing_is_done_by_looking(admin_client: Client, told: World, rest: str) -> None:
    answer = admin_client.get(address(told, rest))
    assert (answer.status_code, answer.headers["Location"]) == (302, address(told))
    assert not ChatPause.objects.exists()


@pytest.mark.parametrize("rest", POSTS)
@pytest.mark.parametrize("missing", RIGHTS)
def test_each_right_is_asked_for(told: World, rest: str, missing: str) -> None:
    client = staff_with(*(right for right in RIGHTS if right != missing))
    assert client.post(address(told, rest), POSTS[rest]).status_code == 403
    assert client.get(address(told)).status_code == 403
    assert not ChatPause.objects.exists()
    assert not Turn.objects.filter(by_hand=True).exists()


@pytest.mark.parametrize("rest", POSTS)
def test_these_rights_are_enough(told: World, rest: str) -> None:
    client = staff_with(*RIGHTS)
    assert client.post(address(told, rest), POSTS[rest]).status_code == 302


@pytest.mark.parametrize("rest", POSTS)
def test_a_post_from_another_site_is_refused(told: World, rest: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("root", password="a-password"))
    assert client.post(address(told, rest), POSTS[rest]).status_code == 403


@pytest.mark.parametrize("rest", POSTS)
def test_an_unknown_chat_is_not_found(admin_client: Client, rest: str) -> None:
    path = f"/admin/sessions_app/turn/takeover/{uuid.uuid4()}/{rest}"
    assert admin_client.post(path, POSTS[rest]).status_code == 404


def test_who_may_only_read_sees_that_it_is_paused(admin_client: Client, told: World) -> None:
    reader = staff_with(*RIGHTS[:2])
    assert panel(reader, told) == ""
    admin_client.post(address(told, "pause/"), {"lasts": "open"})
    shown = panel(reader, told)
    assert "Paused by <bdi>admin</bdi>" in shown
    assert "<form" not in shown


def test_the_panel_takes_as_many_queries_in_a_long_chat(
    admin_client: Client, told: World, django_assert_max_num_queries: Any
) -> None:
    admin_client.post(address(told, "pause/"), {"lasts": "open"})
    for _ in range(30):
        told.receive(message_from(CLIENT, "Held"))
    admin_client.get(address(told))
    with django_assert_max_num_queries(14):
        shown = admin_client.get(address(told)).content.decode()
    assert "30 messages came in meanwhile" in shown


def test_the_panel_says_how_long_the_window_is_open(admin_client: Client, told: World) -> None:
    Message.objects.update(timestamp=timezone.now() - timedelta(hours=20, minutes=-5))
    Turn.objects.update(asked_at=datetime(2020, 1, 1, tzinfo=ZoneInfo("UTC")))
    shown = html.unescape(panel(admin_client, told)).replace("\xa0", " ")
    assert "<span data-left>4 hours, 4 minutes</span> left" in shown


@pytest.mark.parametrize(
    ("by", "hint"),
    [("green", "goes out by Green API"), ("console", "is sent to nobody")],
)
def test_a_chat_that_came_by_neither_provider_says_where_a_reply_goes(
    admin_client: Client, world: World, settings: Any, by: str, hint: str
) -> None:
    settings.WHATSAPP_PROVIDER = by
    settings.GREEN_API_ID_INSTANCE = "1101000001"
    world.say(CLIENT, "Hi", provider="console", number_id="")
    shown = panel(admin_client, world)
    assert "came by neither provider" in shown
    assert hint in shown
    reply = {"text": "Hello", "key": key_of(shown)}
    answer = admin_client.post(address(world, "reply/"), reply, follow=True)
    (said,) = messages_of(answer)
    assert ("is on its way" in said) == (by == "green")
    assert ("Nobody was sent it" in said) == (by == "console")
    turn = Turn.objects.get(by_hand=True)
    assert (turn.provider, turn.number_id) == (
        by,
        "1101000001" if by == "green" else "",
    )


def test_a_chat_that_came_by_whatsapp_needs_no_such_hint(admin_client: Client, told: World) -> None:
    assert "neither provider" not in panel(admin_client, told)
