"""What a phone shares that uses the number too: old messages, and the names of its contacts."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memoryproject.foundation.leases import leases_sweep
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from sessions_app.inbox.read_markers import news_count, place_marked
from sessions_app.models import (
    Chat,
    ChatAccess,
    ChatSession,
    ExtractionWork,
    InboundDelivery,
    Message,
    ReadMark,
    Turn,
)
from sessions_app.sweeps import leased_kinds
from tests.webhooks.posting import post_cloud
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db

PHONE, OURS = "15550100123", "15550100001"
# In March 2026.
MARCH = 1_773_000_000
DAY = 86_400


def body(field: str, **value: Any) -> dict[str, Any]:
    about = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": OURS, "phone_number_id": "100000000000001"},
    }
    return {"entry": [{"id": "1", "changes": [{"field": field, "value": {**about, **value}}]}]}


def old(key: str, at: int, by: str = PHONE, changes: Any = None) -> dict[str, Any]:
    text = {"type": "text", "text": {"body": key}}
    status = {"history_context": {"status": "READ"}}
    return {
        "from": by,
        "id": f"wamid.{key}",
        "timestamp": str(at),
        **text,
        **status,
        **(changes or {}),
    }


def history(*messages: dict[str, Any], person: str = PHONE, chunk: int = 1) -> dict[str, Any]:
    about = {"phase": 0, "chunk_order": chunk, "progress": 55}
    threads = [{"id": person, "messages": list(messages)}]
    return body("history", history=[{"metadata": about, "threads": threads}])


def said(world: World, chat: str = CLIENT) -> list[str]:
    return [message.content for message in world.messages(chat)]


@pytest.fixture
def page() -> Client:
    browser = Client()
    browser.force_login(User.objects.create_superuser("admin", password="a-password"))
    return browser


def unread() -> dict[Any, int]:
    """The messages that are new to the one member of the staff, by chat."""
    marks = {mark.chat_id: place_marked(mark) for mark in ReadMark.objects.all()}
    places = {chat.pk: marks.get(chat.pk, place_marked(None)) for chat in Chat.objects.all()}
    return news_count(places, ["user"], 99)


def test_old_messages_come_before_what_is_there_once_and_are_not_answered(
    client: Client, world: World, page: Client
) -> None:
    WebhookEndpoint.objects.create(name="crm", url="https://example.com/hooks")
    world.say(CLIENT, "from today")
    begun = Message.objects.count(), Turn.objects.count(), WebhookDelivery.objects.count()
    later = history(
        old("fourth", MARCH + 40 * DAY, by=OURS),
        old("third", MARCH + 3),
        old("/remember the code is 1234", MARCH + 4),
        chunk=2,
    )
    earlier = history(old("second", MARCH + 2, by=OURS), old("first", MARCH + 1))
    overlapping = history(old("second", MARCH + 2, by=OURS), old("between", MARCH + 2))
    for each in (later, earlier, overlapping, later, earlier):
        assert post_cloud(client, each).status_code == 200
    world.work()
    assert said(world)[:6] == [
        "first",
        "second",
        "between",
        "third",
        "/remember the code is 1234",
        "fourth",
    ]
    ours = Message.objects.get(content="second")
    assert (ours.role, ours.delivery_status, ours.timestamp.year) == ("assistant", "read", 2026)
    assert Message.objects.count() == begun[0] + 6
    assert (Turn.objects.count(), WebhookDelivery.objects.count()) == begun[1:]
    assert len(world.provider.sent) == 1
    ended = ChatSession.objects.exclude(status="active")
    assert {session.status for session in ended} == {"expired"}
    numbers = Message.objects.filter(session__in=ended).order_by("session__created_at", "order_num")
    assert list(numbers.values_list("order_num", flat=True)) == [1, 2, 3, 4, 5, 1]
    shown = page.get(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/")
    assert b"fourth" in shown.content


def test_old_messages_are_no_news(client: Client, world: World, page: Client) -> None:
    post_cloud(client, history(old("one", MARCH)))
    post_cloud(client, history(old("two", MARCH + 60 * DAY), old("zero", MARCH - 60 * DAY)))
    assert unread() == {}
    world.say(CLIENT, "a new one")
    assert unread() == {world.chat(CLIENT).pk: 1}
    assert world.chat(CLIENT).activity.last_at.year >= 2026
    (row,) = page.get("/admin/sessions_app/chat/").context["rows"]
    assert row.unread == 1


def test_a_live_message_and_its_copy_in_the_history_are_one(client: Client, world: World) -> None:
    live = body("messages", messages=[old("hello", int(time.time()))])
    post_cloud(client, live)
    post_cloud(client, history(old("hello", MARCH)))
    assert said(world) == ["hello"]
    assert Turn.objects.count() == 1


IMAGE = {"type": "image", "image": {"id": "99", "mime_type": "image/jpeg", "caption": "Our shop"}}


@pytest.mark.parametrize("details_first", [False, True])
def test_the_file_of_an_old_message_is_told_later(
    client: Client, world: World, details_first: bool
) -> None:
    stands = {"type": "media_placeholder", "text": None}
    placeholder = history(old("picture", MARCH, changes=stands), old("after", MARCH + 1))
    details = body("history", messages=[old("picture", MARCH, changes=IMAGE)])
    for each in (details, placeholder) if details_first else (placeholder, details):
        post_cloud(client, each)
    picture, after = world.messages(CLIENT)
    assert (picture.kind, picture.content, after.content) == ("image", "Our shop", "after")
    assert picture.media["media_id"] == "99"
    assert not hasattr(picture, "file")


def test_thousands_of_messages_are_worked_off_in_pieces(client: Client, world: World) -> None:
    many = [old(f"{number:04}", MARCH + number) for number in range(1200)]
    assert post_cloud(client, history(*many[::-1])).status_code == 200
    assert Message.objects.count() == 50
    assert InboundDelivery.objects.filter(retry_at__isnull=False).count() == 3
    leases_sweep(list(leased_kinds()))
    assert said(world) == [f"{number:04}" for number in range(1200)]
    post_cloud(client, history(*many))
    leases_sweep(list(leased_kinds()))
    assert Message.objects.count() == 1200
    assert not InboundDelivery.objects.filter(retry_at__isnull=False).exists()
    assert not InboundDelivery.objects.filter(raw__isnull=False).exists()


def test_what_was_erased_does_not_come_back(client: Client, world: World) -> None:
    post_cloud(client, history(old("a secret", MARCH), old("other", MARCH + 1)))
    world.forget("message", Message.objects.get(content="a secret").pk)
    post_cloud(client, history(old("a secret", MARCH), chunk=7))
    assert said(world) == ["other"]
    world.forget("chat", world.chat(CLIENT).pk)
    post_cloud(client, history(old("other", MARCH + 1), chunk=8))
    assert not Message.objects.exists()


def test_a_revocation_that_came_first_holds(client: Client, world: World) -> None:
    revoke = {"type": "revoke", "revoke": {"original_message_id": "wamid.regret"}}
    world.say(CLIENT, "hello")
    post_cloud(client, body("messages", messages=[old("revoking", MARCH + 1, changes=revoke)]))
    post_cloud(client, history(old("regret", MARCH), old("kept", MARCH + 1)))
    assert said(world)[:2] == ["", "kept"]


@pytest.mark.parametrize("way", ["memory is off", "blocked"])
def test_nothing_is_stored_where_nothing_is_kept(
    client: Client, world: World, settings: Any, way: str
) -> None:
    world.say(CLIENT, "hello")
    if way == "blocked":
        ChatAccess.objects.create(chat=world.chat(CLIENT), standing="blocked")
    else:
        settings.ENABLE_MEMORY_SYSTEM = False
    before = Message.objects.count()
    post_cloud(client, history(old("one", MARCH)))
    assert Message.objects.count() == before
    if way == "memory is off":
        post_cloud(client, history(old("two", MARCH, by="15550100777"), person="15550100777"))
        assert Chat.objects.count() == 1


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"history": []},
        {"history": "none"},
        {"history": [{"threads": [{"id": PHONE, "messages": [{}, 7, None, "x"]}]}]},
        {"history": [{"threads": [None, {"messages": [old("nobody's", MARCH, by=OURS)]}]}]},
        {"history": [{"threads": [{"id": "", "messages": [{"id": "wamid.X"}]}]}]},
        {"messages": [{"id": "wamid.X", "type": "image"}]},
        # Groups aren't what a person wrote to us.
        {"history": [{"threads": [{"id": "1203@g.us", "messages": [old("g", MARCH)]}]}]},
        {"messages": [old("g", MARCH, changes={"group_id": "1203"})]},
    ],
)
def test_what_can_not_be_read_stops_nothing(client: Client, value: dict[str, Any]) -> None:
    assert post_cloud(client, body("history", **value)).status_code == 200
    assert not Message.objects.exists()
    assert InboundDelivery.objects.exists()


@pytest.mark.parametrize("in_value", [False, True])
def test_staff_see_that_the_owner_shares_no_history(client: Client, in_value: bool) -> None:
    title = "History sync is turned off"
    declined = {"errors": [{"code": 2593109, "title": title}]}
    post_cloud(client, body("history", **(declined if in_value else {"history": [declined]})))
    notice = InboundDelivery.objects.get()
    assert (notice.event, title in notice.outcome) == ("Notice", True)


def contact(name: str, phone: str, action: str = "add") -> dict[str, Any]:
    return {
        "type": "contact",
        "contact": {"full_name": name, "first_name": name, "phone_number": phone},
        "action": action,
    }


def test_the_names_of_the_address_book(client: Client, world: World) -> None:
    world.say(OTHER_CLIENT, "hello")
    book = [contact("Dana of the bakery", PHONE), contact("Omri", "+1 555-010-0456")]
    gone, broken = contact("", PHONE, "remove"), contact("Nobody", "")
    for _ in range(2):
        post_cloud(client, body("smb_app_state_sync", state_sync=[*book, gone, broken, 3]))
    assert world.chat(OTHER_CLIENT).staff_name == "Omri"
    assert Chat.objects.count() == 1
    post_cloud(client, history(old("one", MARCH)))
    assert world.chat(CLIENT).staff_name == "Dana of the bakery"
    Chat.objects.update(staff_name="Dana")
    post_cloud(client, body("smb_app_state_sync", state_sync=[contact("Another", PHONE)]))
    assert world.chat(CLIENT).staff_name == "Dana"
    world.forget("chat", world.chat(CLIENT).pk)
    assert not InboundDelivery.objects.filter(subject_id=CLIENT).exists()


@pytest.mark.parametrize("is_wanted", [False, True])
def test_facts_are_learned_from_old_messages_only_on_request(
    client: Client, world: World, settings: Any, is_wanted: bool
) -> None:
    settings.EXTRACT_MEMORIES = settings.ENABLE_MEMORY_SYSTEM = settings.LONGTERM_ENABLED = True
    settings.CHAT_MODEL = "openai"
    settings.LEARN_FROM_HISTORY = is_wanted
    fact, ours = old("I am allergic to nuts", MARCH), old("Noted", MARCH + 1, by=OURS)
    for _ in range(2):
        post_cloud(client, history(fact, ours))
    world.work()
    assert ExtractionWork.objects.count() == Turn.objects.count() == is_wanted
    assert {turn.state for turn in Turn.objects.all()} <= {"cancelled"}
    assert world.provider.sent == []
