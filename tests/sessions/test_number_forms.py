"""One person whose number WhatsApp writes in two forms: one chat, one role, one memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from memoryproject.foundation.integrations.whatsapp.events import Party
from memoryproject.foundation.integrations.whatsapp.green.parse import parse_green
from sessions_app.conversations.chat_addresses import chat_at_or_new
from sessions_app.conversations.chat_queries import chat_at
from sessions_app.models import Chat, ChatAccess
from sessions_app.models.chats import GODFATHER
from sessions_app.models.limits import Standing
from tests.doubles.recording_provider import RecordingProvider
from tests.events import moved, revocation, status
from tests.threads import at_once
from tests.webhooks.test_message_ids import wamid
from tests.world import World, message_from

LONG, SHORT = "5511987654321", "551187654321"
LANDLINE, ITS_MOBILE = "551133334444", "5511933334444"
PAIRS = [
    (LONG, SHORT),
    (SHORT, LONG),
    ("5215512345678", "525512345678"),
    ("541155551234", "5491155551234"),
    ("22507123456", "2250707123456"),
]
BSUID = "BR.10000000000000000001"
OTHER_BSUID = "BR.10000000000000000002"
LID = "99887766554433@lid"


def say(world: World, phone: str, text: str, **changes: Any) -> list[str]:
    changes.setdefault("party", Party(phone=phone))
    return world.say(f"{phone}@c.us", text, **changes)


def current(chat: Chat) -> set[str]:
    return set(chat.addresses.filter(left_at=None).values_list("address", flat=True))


def two_chats(world: World, *, talked: bool = True) -> tuple[Chat, Chat]:
    """A chat of each form, as they are from before the forms were known as one."""
    say(world, LONG, "hello")
    other = chat_at_or_new("15550100456")
    if talked:
        say(world, "15550100456", "hello too")
    short = f"{SHORT}@c.us"
    other.addresses.update(address=short)
    Chat.objects.filter(pk=other.pk).update(whatsapp_chat=short, client_phone=SHORT)
    return world.chat(f"{LONG}@c.us"), world.chat(short)


@pytest.mark.parametrize(("first", "then"), PAIRS)
def test_both_forms_are_one_person(world: World, first: str, then: str) -> None:
    say(world, first, "/remember I like tea")
    party = Party(phone=then)
    assert "I like tea" in world.seen_by_model(f"{then}@c.us", "Do I like tea?", party=party)
    chat = Chat.objects.get()
    assert current(chat) == {f"{first}@c.us", f"{then}@c.us"}
    for form in (first, then):
        assert chat_at(form) == chat_at(f"+{form}") == chat_at_or_new(form) == chat
    # What is sent goes to the form that WhatsApp used last.
    assert world.provider.sent[-1].to.phone == then


def test_a_landline_is_another_person(world: World) -> None:
    say(world, LANDLINE, "/remember The code is 1234")
    party = Party(phone=ITS_MOBILE)
    assert "1234" not in world.seen_by_model(f"{ITS_MOBILE}@c.us", "The code?", party=party)
    assert Chat.objects.count() == 2


@pytest.mark.parametrize(
    ("set_to", "writes", "role"),
    [
        (LONG, SHORT, GODFATHER),
        (SHORT, LONG, GODFATHER),
        (LANDLINE, ITS_MOBILE, "client"),
        (ITS_MOBILE, LANDLINE, "client"),
    ],
)
def test_the_owner_is_known_by_each_form(world: World, set_to: str, writes: str, role: str) -> None:
    world.with_chat_memory(godfather=frozenset({f"{set_to}@c.us"}))
    say(world, writes, "hello")
    assert Chat.objects.get().turns.get().user_role == role


def test_programs_and_late_messages_do_not_change_where_answers_go(world: World) -> None:
    before = timezone.now() - timedelta(minutes=5)
    chat_at_or_new(LONG)
    say(world, SHORT, "hello")
    world.talk("and by a program", f"{LONG}@c.us")
    say(world, LONG, "delivered late", timestamp=before)
    assert Chat.objects.get().whatsapp_chat == f"{SHORT}@c.us"
    assert world.provider.sent[-1].to.phone == SHORT
    say(world, LONG, "now by the other")
    assert world.provider.sent[-1].to.phone == LONG


def test_each_provider_gets_its_own_form(world: World) -> None:
    say(world, LONG, "by the Cloud API")
    say(world, SHORT, "by Green API", provider="green", number_id="1101000001")
    # Both write again before the answers.
    green = {"provider": "green", "number_id": "1101000001"}
    world.receive(message_from(f"{LONG}@c.us", "again"))
    world.receive(message_from(f"{SHORT}@c.us", "again", **green))
    world.work()
    for name, form in (("cloud", LONG), ("green", SHORT)):
        provider = world.dependencies.providers[name]
        assert isinstance(provider, RecordingProvider)
        assert [part.to.phone for part in provider.sent] == [form, form]


def test_a_status_shows_the_form_of_who_has_not_written(world: World) -> None:
    chat_at_or_new(LONG)
    world.receive(status("wamid.1", "read", party=Party(phone=SHORT)))
    assert Chat.objects.get().whatsapp_chat == f"{SHORT}@c.us"
    say(world, LONG, "hello")
    world.receive(status("wamid.1", "played", party=Party(phone=SHORT)))
    assert Chat.objects.get().whatsapp_chat == f"{LONG}@c.us"


def test_a_chat_without_messages_joins_the_other(world: World) -> None:
    two_chats(world, talked=False)
    say(world, SHORT, "hello")
    assert current(Chat.objects.get()) == {f"{LONG}@c.us", f"{SHORT}@c.us"}


def test_chats_in_which_both_talked_stay_two(world: World) -> None:
    one, other = two_chats(world)
    assert Chat.objects.count() == 2
    for phone, chat in ((LONG, one), (SHORT, other)):
        say(world, phone, "again")
        assert chat.messages.filter(content="again").exists()
        assert chat_at(phone) == chat
        assert world.provider.sent[-1].to.phone == phone


@pytest.mark.parametrize("allowed_only", [False, True])
def test_what_staff_decide_holds_for_both_chats(world: World, allowed_only: bool) -> None:
    one, _other = two_chats(world)
    world.with_rules(limits=replace(world.rules.limits, allow_list_only=allowed_only))
    standing = Standing.ALLOWED if allowed_only else Standing.BLOCKED
    ChatAccess.objects.update_or_create(chat=one, defaults={"standing": standing})
    assert [bool(say(world, phone, "?")) for phone in (LONG, SHORT)] == [allowed_only] * 2


def test_a_number_that_changes_hands_goes_in_each_form(world: World) -> None:
    say(world, LONG, "/remember The code is 1234", party=Party(phone=LONG, bsuid=BSUID))
    say(world, SHORT, "hello", party=Party(phone=SHORT, bsuid=BSUID))
    stranger = Party(phone=SHORT, bsuid=OTHER_BSUID)
    assert "1234" not in world.seen_by_model(f"{SHORT}@c.us", "The code?", party=stranger)
    assert current(Chat.objects.earliest("created_at")) == {f"{BSUID}@bsuid"}
    assert "1234" not in world.seen_by_model(
        f"{LONG}@c.us", "And this?", party=Party(phone=LONG, bsuid=OTHER_BSUID)
    )
    assert Chat.objects.count() == 2


def test_a_new_number_leaves_each_form_of_the_old_one(world: World) -> None:
    say(world, LONG, "/remember The code is 1234")
    say(world, SHORT, "hello")
    world.receive(moved(Party(phone=LONG), Party(phone="15550100789")))
    assert current(Chat.objects.get()) == {"15550100789@c.us"}
    for phone in (SHORT, LONG):
        assert "1234" not in world.seen_by_model(
            f"{phone}@c.us", "The code?", party=Party(phone=phone)
        )
    assert Chat.objects.count() == 2


def test_another_form_is_no_new_number(world: World) -> None:
    say(world, SHORT, "/remember I like tea")
    world.receive(moved(Party(phone=SHORT), Party(phone=LONG)))
    assert current(Chat.objects.get()) == {f"{LONG}@c.us", f"{SHORT}@c.us"}


def test_a_form_that_was_taken_for_an_old_number_is_used_again(world: World) -> None:
    say(world, LONG, "hello", party=Party(phone=LONG, bsuid=BSUID))
    chat = Chat.objects.get()
    long_ago = timezone.now() - timedelta(days=9)
    chat.addresses.create(provider="cloud", address=f"{SHORT}@c.us", left_at=long_ago)
    say(world, SHORT, "hello")
    assert current(Chat.objects.get()) == {f"{LONG}@c.us", f"{SHORT}@c.us", f"{BSUID}@bsuid"}


def test_a_change_by_the_other_form_meets_its_message(world: World) -> None:
    say(world, LONG, "secret", provider_message_id="wamid.1")
    world.receive(revocation("wamid.1", party=Party(phone=SHORT)))
    assert Chat.objects.get().messages.get(role="user").content == ""


def test_a_message_that_comes_under_the_id_of_each_form_is_one(world: World) -> None:
    for phone in (LONG, SHORT):
        say(world, phone, "once", provider_message_id=wamid(phone, "AC0F09C0F8BF5E7A4B06"))
    assert Chat.objects.get().messages.filter(role="user").count() == 1


@pytest.mark.parametrize(
    "parties",
    [
        [Party(other=LID), Party(phone=SHORT), Party(phone=LONG, other=LID)],
        [Party(phone=LONG, other=LID), Party(other=LID), Party(phone=SHORT)],
        [Party(bsuid=BSUID), Party(phone=LONG), Party(phone=SHORT, bsuid=BSUID)],
        [Party(phone=SHORT, bsuid=BSUID), Party(phone=LONG, other=LID), Party(bsuid=BSUID)],
    ],
)
def test_hidden_ids_and_both_forms_are_one_person(world: World, parties: list[Party]) -> None:
    for party in parties:
        assert say(world, LONG, "hello", party=party)
    assert Chat.objects.get().client_phone in (LONG, SHORT)


@pytest.mark.parametrize("hidden", [0, "0", "000000", None, ""])
def test_who_hides_the_number_stays_themselves(world: World, hidden: object) -> None:
    for lid in (LID, "99887766554434@lid"):
        body = {
            "typeWebhook": "incomingMessageReceived",
            "instanceData": {"idInstance": 1101000001, "wid": "15550109999@c.us"},
            "idMessage": f"3EB0{lid[:14]}",
            "senderData": {"chatId": lid, "sender": lid, "senderPhoneNumber": hidden},
            "messageData": {"typeMessage": "textMessage", "textMessageData": {"textMessage": "Hi"}},
        }
        world.receive(*parse_green(body))
    assert [current(chat) for chat in Chat.objects.order_by("created_at")] == [
        {LID},
        {"99887766554434@lid"},
    ]


@pytest.mark.parametrize("chat", ["status@broadcast", "120363000000000001@newsletter"])
def test_who_posts_to_many_at_once_stays_themselves(world: World, chat: str) -> None:
    content = {"typeMessage": "textMessage", "textMessageData": {"textMessage": "My day"}}
    for number, kind in ((LONG, "incoming"), (LANDLINE, "incoming"), (SHORT, "outgoing")):
        body = {
            "typeWebhook": f"{kind}MessageReceived",
            "instanceData": {"idInstance": 1101000001, "wid": "15550109999@c.us"},
            "idMessage": f"3EB0{number}",
            "senderData": {"chatId": chat, "sender": f"{number}@c.us"},
            "messageData": content,
        }
        world.receive(*parse_green(body))
    assert not Chat.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_both_forms_at_once_make_one_chat(world: World) -> None:
    events = [message_from(f"{phone}@c.us", "hello") for phone in (LONG, SHORT) * 2]
    at_once(*(partial(world.receive, event) for event in events))
    assert Chat.objects.get().messages.count() == len(events)
