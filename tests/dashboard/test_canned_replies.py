"""Canned replies: managed under Settings, and filled from the chat for the reply box."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import AssistantProfile, CannedReply, Chat
from sessions_app.takeover.canned_replies import MAX_FOUND, fill
from tests.dashboard.staff import staff_with
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db
LIST = "/admin/sessions_app/cannedreply/"
RIGHTS = ("sessions_app.view_chat", "sessions_app.view_message", "sessions_app.takeover_chat")
GREETING = {"name": "Greeting", "shortcut": "hi", "text": "Hello {name|there} from {business}"}


@pytest.fixture
def chat(world: World, settings: Any) -> Chat:
    settings.ENABLE_MEMORY_SYSTEM = True
    world.say(CLIENT, "Hi")
    chat = world.chat(CLIENT)
    Chat.objects.filter(pk=chat.pk).update(client_name="Emma  Clarke")
    AssistantProfile.objects.update_or_create(pk=1, defaults={"business_name": "Café Shaked"})
    return chat


def offered(client: Client, chat: Chat, words: str = "") -> list[dict[str, str]]:
    answer = client.get(f"/admin/sessions_app/turn/takeover/{chat.pk}/canned/", {"q": words})
    assert answer.status_code == 200
    found: list[dict[str, str]] = answer.json()["replies"]
    return found


def test_one_is_made_changed_and_deleted_and_each_is_audited(admin_client: Client) -> None:
    form = {**GREETING, "shortcut": "/hi"}
    assert admin_client.post(f"{LIST}add/", form).status_code == 302
    reply = CannedReply.objects.get()
    assert (reply.name, reply.shortcut) == ("Greeting", "hi")
    assert "/hi" in admin_client.get(LIST).content.decode()
    page = f"{LIST}{reply.pk}/"
    opened = admin_client.get(f"{page}change/").context["adminform"].form
    changed = {**GREETING, "text": "Good day", "seen": opened["seen"].value()}
    assert admin_client.post(f"{page}change/", changed).status_code == 302
    assert CannedReply.objects.get().text == "Good day"
    assert admin_client.post(f"{page}delete/", {"post": "yes"}).status_code == 302
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
def test_what_could_not_be_used_is_refused(
    admin_client: Client, field: str, value: str, problem: str
) -> None:
    CannedReply.objects.create(name="Other", shortcut="hi", text="Hi")
    form = {**GREETING, "shortcut": "hello", field: value}
    answer = admin_client.post(f"{LIST}add/", form)
    assert answer.context["adminform"].form.errors == {
        field if problem[:5] != "There" else "__all__": [problem]
    }
    assert CannedReply.objects.count() == 1


def test_it_comes_filled_from_the_chat(admin_client: Client, chat: Chat) -> None:
    CannedReply.objects.create(**GREETING)
    (found,) = offered(admin_client, chat)
    assert found == {**GREETING, "text": "Hello Emma Clarke from Café Shaked"}


def test_without_a_name_the_words_given_for_that_stand(admin_client: Client, chat: Chat) -> None:
    CannedReply.objects.create(**GREETING)
    Chat.objects.update(client_name="")
    AssistantProfile.objects.update(business_name="", name="Shaked")
    (found,) = offered(admin_client, chat)
    assert found["text"] == "Hello there from Shaked"


def test_a_groups_name_is_nobodys(admin_client: Client, chat: Chat) -> None:
    CannedReply.objects.create(**GREETING)
    Chat.objects.update(is_group=True)
    assert offered(admin_client, chat)[0]["text"].startswith("Hello there")


def test_a_persons_name_is_never_a_placeholder(admin_client: Client, chat: Chat) -> None:
    CannedReply.objects.create(**GREETING)
    Chat.objects.update(client_name="{business}")
    assert offered(admin_client, chat)[0]["text"] == "Hello {business} from Café Shaked"


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


def test_a_shortcut_comes_before_a_name_and_the_list_is_bounded(
    admin_client: Client, chat: Chat
) -> None:
    CannedReply.objects.create(name="High season", shortcut="aa", text="1")
    CannedReply.objects.create(name="Greeting", shortcut="Hi", text="2")
    CannedReply.objects.create(name="Hours", shortcut="zz", text="3")
    assert [each["text"] for each in offered(admin_client, chat, "hi")] == ["2", "1"]
    assert offered(admin_client, chat, "nothing") == []
    assert offered(admin_client, chat, "x" * 9_999) == []
    for number in range(MAX_FOUND):
        CannedReply.objects.create(name="n", shortcut=f"n{number}", text="n")
    assert len(offered(admin_client, chat)) == MAX_FOUND


def test_who_may_reply_may_use_them_and_nobody_else(chat: Chat) -> None:
    CannedReply.objects.create(**GREETING)
    assert len(offered(staff_with(*RIGHTS), chat)) == 1
    address = f"/admin/sessions_app/turn/takeover/{chat.pk}/canned/"
    assert staff_with(*RIGHTS[:2], name="vera").get(address).status_code == 403


def test_the_menu_names_them_for_who_may_see_them(admin_client: Client) -> None:
    menu = admin_client.get("/admin/").content.decode()
    assert f'href="{LIST}"' in menu
    other = staff_with("sessions_app.view_chat").get("/admin/").content.decode()
    assert f'href="{LIST}"' not in other
