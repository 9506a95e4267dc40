"""The panel by which staff take a chat over: pauses, replies, canned replies, and what it posts."""

from __future__ import annotations

import html
import uuid
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.inbox.needs import conversations_count
from sessions_app.models import AssistantProfile, CannedReply, Chat, ChatPause, Message, Turn
from sessions_app.takeover.canned_replies import MAX_FOUND, fill
from tests.dashboard.senders import by_hand, conversation, panel, post, silent_for_a_day, takeover
from tests.dashboard.staff import page, staff_with
from tests.shown import found_in, messages_of
from tests.world import CLIENT, World, new_world

pytestmark = pytest.mark.django_db

ZONE = ZoneInfo("Asia/Jerusalem")
CANNED = "/admin/sessions_app/cannedreply/"
GREETING = {"name": "Greeting", "shortcut": "hi", "text": "Hello {name|there} from {business}"}


@pytest.fixture(autouse=True)
def in_jerusalem(settings: Any) -> None:
    settings.BUSINESS_TIME_ZONE = "Asia/Jerusalem"


@pytest.fixture(scope="module")
def said_hi(module_rows: None) -> None:
    new_world().say(CLIENT, "Hi")


@pytest.fixture
def told(said_hi: None, world: World) -> World:
    return world


def key_of(shown: str) -> str:
    return found_in(r'name="key" value="([0-9a-f-]{36})"', shown)


def test_it_is_paused_until_a_time(admin_client: Client, told: World) -> None:
    """For hours, until the morning by the business's clock, or until any time."""
    now = timezone.localtime(timezone=ZONE)
    later = (now + timedelta(days=3)).replace(second=0, microsecond=0)
    morning = (now + timedelta(days=1)).replace(hour=8, minute=0, second=0, microsecond=0)
    for form, until in (
        ({"lasts": "1h"}, now + timedelta(hours=1)),
        ({"lasts": "8h"}, now + timedelta(hours=8)),
        ({"lasts": "morning"}, morning),
        ({"lasts": "at", "until": f"{later:%Y-%m-%dT%H:%M}"}, later),
    ):
        answer = admin_client.post(takeover(told, "pause/"), form, follow=True)
        assert messages_of(answer)[0].startswith("The assistant is paused until ")
        stored = ChatPause.objects.get().until
        assert stored is not None
        assert abs(stored - until) < timedelta(minutes=5), form
    assert "The assistant is paused" in panel(admin_client, told)
    # Who may only read sees who paused it.
    reader = staff_with("sessions_app.view_chat", "sessions_app.view_message")
    shown = panel(reader, told)
    assert "Paused by <bdi>admin</bdi>" in shown
    assert "<form" not in shown


def test_a_wrong_time_is_told_and_pauses_nothing(admin_client: Client, told: World) -> None:
    times = ("soon", "2020-01-01T10:00", "9999-12-31T23:59", "2026-02-30T10:00", "\x00")
    forms = [{}, {"lasts": "9h"}, {"lasts": "at"}]
    for form in forms + [{"lasts": "at", "until": each} for each in times]:
        answer = admin_client.post(takeover(told, "pause/"), form)
        assert answer.status_code == 422, form
        assert b'class="problem"' in answer.content
    assert not ChatPause.objects.exists()


def test_handed_back_it_may_answer_the_last_message(admin_client: Client, told: World) -> None:
    post(admin_client, told, "pause", lasts="open")
    assert 'value="last"' not in panel(admin_client, told)
    told.say(CLIENT, "Are you there?")
    shown = panel(admin_client, told)
    assert "1 message came in meanwhile" in shown
    assert 'value="last"' in shown
    answer = admin_client.post(takeover(told, "resume/"), {"answer": "last"}, follow=True)
    assert messages_of(answer) == ["The assistant goes on, and answers the last message now."]
    told.work()
    assert told.provider.sent[-1].text == "answer to: Are you there?"
    answer = admin_client.post(takeover(told, "resume/"), follow=True)
    assert messages_of(answer) == ["The assistant wasn't paused here any more."]
    assert "Assistant is on" in panel(admin_client, told)


# Replies


def reply(client: Client, world: World, text: str) -> None:
    form = {"text": text, "key": key_of(panel(client, world))}
    client.post(takeover(world, "reply/"), form)
    world.work()


def test_a_reply_empties_the_queue(admin_client: Client, told: World) -> None:
    reply(admin_client, told, "How may I help?")
    assert conversations_count() == 0, "nobody waits: staff have the last word"
    told.say(CLIENT, "Is the blue one there?")
    assert conversations_count() == 1
    reply(admin_client, told, "It is")
    assert conversations_count() == 0
    Turn.objects.exclude(by_hand=True).update(state="failed")
    assert conversations_count() == 0, "somebody answered since"
    told.say(CLIENT, "And the red one?")
    Turn.objects.filter(by_hand=False).update(state="failed")
    assert conversations_count() == 1
    reply(admin_client, told, "No")
    Turn.objects.filter(by_hand=True).update(state="failed")
    assert conversations_count() == 1, "it didn't arrive"


def test_a_reply_goes_out_once_however_often_posted(admin_client: Client, told: World) -> None:
    shown = panel(admin_client, told)
    assert "Sending pauses the assistant for 60 minutes." in shown
    form = {"text": "Hello\r\nfrom me", "key": key_of(shown)}
    first, again = (
        messages_of(admin_client.post(takeover(told, "reply/"), form, follow=True))
        for _ in range(2)
    )
    assert first[0].startswith("Your reply is on its way. The assistant is paused until")
    assert again == ["This reply was sent already."]
    told.work()
    assert [part.text for part in told.provider.sent] == ["Hello\nfrom me"]
    author = User.objects.get(username="admin")
    assert Message.objects.latest("order_num").metadata["author_id"] == author.pk
    assert "Hello" in conversation(admin_client, told)
    actions = AuditEvent.objects.filter(action__startswith="takeover.").order_by("id")
    assert list(actions.values_list("action", "actor")) == [
        ("takeover.pause", "admin"),
        ("takeover.reply", "admin"),
    ]
    change = f"/admin/sessions_app/turn/{by_hand().pk}/change/"
    assert "Written by <bdi>admin</bdi>" in page(admin_client, change)
    author.delete()
    admin_client.force_login(User.objects.create_superuser("other"))
    assert "Written by <bdi>somebody of the staff</bdi>" in page(admin_client, change)


def test_outside_the_window_it_is_refused_and_kept(admin_client: Client, told: World) -> None:
    Message.objects.update(timestamp=timezone.now() - timedelta(hours=20, minutes=-5))
    Turn.objects.update(asked_at=datetime(2020, 1, 1, tzinfo=ZONE))
    shown = html.unescape(panel(admin_client, told)).replace("\xa0", " ")
    assert "<span data-left>4 hours, 4 minutes</span> left" in shown
    silent_for_a_day()
    shown = panel(admin_client, told)
    assert "window has been closed since" in shown
    assert 'id="takeover-text"' not in shown
    answer = post(admin_client, told, "reply", text="My <b>words")
    assert answer.status_code == 409
    refused = answer.content.decode()
    assert "My &lt;b&gt;words" in refused
    assert "WhatsApp&#x27;s window is closed" in refused
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
def test_what_is_refused_comes_back(admin_client: Client, told: World, text: str, key: str) -> None:
    used = key_of(panel(admin_client, told))
    keys = {"used": used, "fresh": str(uuid.uuid4())}
    post(admin_client, told, "reply", text="First", key=used)
    answer = post(admin_client, told, "reply", text=text, key=keys.get(key, key))
    assert answer.status_code == 409
    refused = answer.content.decode()
    assert key_of(refused) not in (used, keys.get(key))
    assert html.escape(text.strip())[:200] in refused
    assert Turn.objects.filter(by_hand=True).count() == 1


# Canned replies


def offered(client: Client, world: World, words: str = "") -> list[dict[str, str]]:
    answer = client.get(takeover(world, "canned/"), {"q": words})
    assert answer.status_code == 200
    found: list[dict[str, str]] = answer.json()["replies"]
    return found


def test_one_is_made_changed_and_deleted_and_each_is_audited(admin_client: Client) -> None:
    form = {**GREETING, "shortcut": "/hi"}
    assert admin_client.post(f"{CANNED}add/", form).status_code == 302
    reply = CannedReply.objects.get()
    assert (reply.name, reply.shortcut) == ("Greeting", "hi")
    assert "/hi" in page(admin_client, CANNED)
    address = f"{CANNED}{reply.pk}/"
    opened = admin_client.get(f"{address}change/").context["adminform"].form
    changed = {**GREETING, "text": "Good day", "seen": opened["seen"].value()}
    assert admin_client.post(f"{address}change/", changed).status_code == 302
    assert CannedReply.objects.get().text == "Good day"
    assert admin_client.post(f"{address}delete/", {"post": "yes"}).status_code == 302
    assert not CannedReply.objects.exists()
    events = AuditEvent.objects.filter(action__startswith="canned_reply.").order_by("id")
    assert list(events.values_list("action", "actor", "object_id")) == [
        (f"canned_reply.{what}", "admin", str(reply.pk)) for what in ("create", "update", "delete")
    ]
    assert events[1].details == {"fields": ["text"]}


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("shortcut", "two words", "Use letters, digits, - and _ only."),
        ("shortcut", "HI", "There is a canned reply with this shortcut already."),
        ("text", "Until {date}", "Nothing fills {date}. Use {name} or {business}."),
        ("text", "", "This field is required."),
    ],
)
def test_bad_ones_are_refused(admin_client: Client, field: str, value: str, problem: str) -> None:
    CannedReply.objects.create(name="Other", shortcut="hi", text="Hi")
    form = {**GREETING, "shortcut": "hello", field: value}
    answer = admin_client.post(f"{CANNED}add/", form)
    where = field if problem[:5] != "There" else "__all__"
    assert answer.context["adminform"].form.errors == {where: [problem]}
    assert CannedReply.objects.count() == 1


def test_it_comes_filled_from_the_chat(admin_client: Client, told: World) -> None:
    CannedReply.objects.create(**GREETING)
    AssistantProfile.objects.update_or_create(pk=1, defaults={"name": "Shaked"})
    for chat, business, text in (
        ({"client_name": "Emma  Clarke"}, "Café", "Hello Emma Clarke from Café"),
        ({"client_name": "{business}"}, "Café", "Hello {business} from Café"),
        ({"client_name": ""}, "", "Hello there from Shaked"),
        ({"client_name": "Shifts", "is_group": True}, "", "Hello there from Shaked"),
    ):
        Chat.objects.update(**chat)
        AssistantProfile.objects.update(business_name=business)
        assert offered(admin_client, told) == [{**GREETING, "text": text}]


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("Hello {name}, welcome", "Hello, welcome"),
        ("{name}, your order is ready", "Your order is ready"),
        ("Hello\n{name}: your order", "Hello\nYour order"),
        ("Dear {name}!", "Dear!"),
        ("Dear { name | guest }!", "Dear guest!"),
        ("{name}", ""),
        ("Keep {this} as it is", "Keep {this} as it is"),
    ],
)
def test_where_the_name_is_missing_the_text_still_reads_well(text: str, filled: str) -> None:
    assert fill(text, {"name": "", "business": "Café"}) == filled


def test_shortcuts_come_first_and_the_list_is_bounded(admin_client: Client, told: World) -> None:
    for number, (name, shortcut) in enumerate(
        (("High season", "aa"), ("Greeting", "Hi"), ("Hours", "zz")), start=1
    ):
        CannedReply.objects.create(name=name, shortcut=shortcut, text=str(number))
    assert [each["text"] for each in offered(admin_client, told, "hi")] == ["2", "1"]
    assert offered(admin_client, told, "nothing") == []
    assert offered(admin_client, told, "x" * 9_999) == []
    for number in range(MAX_FOUND):
        CannedReply.objects.create(name="n", shortcut=f"n{number}", text="n")
    assert len(offered(admin_client, told)) == MAX_FOUND
