"""A person whose number has two forms: found by either, and two contacts of it offered as one."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.contacts.contact_pages import MERGE
from sessions_app.models import Chat
from tests.api.calling import Api, api_with
from tests.dashboard.staff import page, staff_with
from tests.dashboard.test_spellings import PARTS, ROWS
from tests.forms import save
from tests.sessions.test_number_forms import LONG, SHORT, two_chats
from tests.world import World, message_from, new_world, write_as

pytestmark = pytest.mark.django_db

BRAZIL = ["+55 (11) 98765-4321", "11 98765-4321", "98765-4321", "8765-4321", LONG, f"{LONG}@c.us"]
MEXICO = ["+52 1 55 1234 5678", "+52 55 1234 5678", "55 1234 5678", "5215512345678@c.us"]
ARGENTINA = ["+54 9 11 5555-1234", "011 15-5555-1234", "54 11 15 5555 1234", "11 5555-1234"]


NAMES = ("Ana", "Luz", "Eva", "Dana")
FORMS = {f"{SHORT}@c.us": BRAZIL, "525512345678@c.us": MEXICO, "541155551234@c.us": ARGENTINA}


@pytest.fixture(scope="module")
def four(module_rows: None) -> None:
    world = new_world()
    for address, name in zip((*FORMS, "15550100123@c.us"), NAMES, strict=True):
        write_as(world, address, name, f"/remember {name} likes tea")


@pytest.mark.parametrize(
    ("address", "written"), [(each, form) for each, forms in FORMS.items() for form in forms]
)
def test_every_search_finds_either_form(
    four: None, admin_client: Client, address: str, written: str
) -> None:
    for search, found in PARTS.items():
        shown = page(admin_client, f"{search}{quote(written)}")
        assert len(re.findall(found, shown, re.S)) == 1, search
    for name in (*ROWS, "chatsession", "chataddress"):
        changelist = reverse(f"admin:sessions_app_{name}_changelist")
        listed: Any = admin_client.get(changelist, {"q": written})
        chats = [
            getattr(row, "chat", None) or row.turn.chat for row in listed.context["cl"].queryset
        ]
        assert {chat.whatsapp_chat for chat in chats} == {address}, name


def test_the_api_knows_either_form(world: World) -> None:
    api: Api = api_with()
    write_as(world, f"{SHORT}@c.us", "Ana", "/remember I like tea")
    for form in (LONG, f"+{LONG}", f"{LONG}@c.us", SHORT):
        assert api.get(f"chats/{quote(form)}/").json()["whatsapp_chat"] == f"{SHORT}@c.us"
        for name in ("chats", "sessions", "memories"):
            assert len(api.walk(f"{name}/?whatsapp_chat={quote(form)}")) == 1, name
    api.post("memories/", {"content": "I like cake", "whatsapp_chat": LONG})
    assert Chat.objects.count() == 1


def test_a_receipt_is_found_by_either_form(world: World, admin_client: Client) -> None:
    write_as(world, f"{SHORT}@c.us", "Ana")
    receipt = world.forget("chat", Chat.objects.get().pk)
    for written in (LONG, SHORT, "+55 (11) 98765-4321", f"{LONG}@c.us"):
        listed: Any = admin_client.get("/admin/sessions_app/forgetreceipt/", {"q": written})
        assert [*listed.context["cl"].queryset] == [receipt], written


def test_two_contacts_of_one_number_are_offered_as_one(world: World, admin_client: Client) -> None:
    one, other = two_chats(world)
    for chat, twin in ((one, other), (other, one)):
        merge = reverse("admin:contact_merge", args=[chat.pk, twin.pk])
        for shown in ("", f"{chat.pk}/", f"{chat.pk}/merge/"):
            assert merge in page(admin_client, f"/admin/contacts/{shown}"), shown
    reader = staff_with("sessions_app.view_chat")
    assert "/merge/" not in page(reader, "/admin/contacts/") + page(
        reader, f"/admin/contacts/{one.pk}/"
    )
    merger = staff_with(*MERGE, name="ron")
    assert "two phone numbers" not in page(merger, merge)
    answer = save(merger, reverse("admin:contact_merge", args=[one.pk, other.pk]), {"name": ""})
    assert answer.status_code == 302
    for phone in (SHORT, LONG):
        world.receive(message_from(f"{phone}@c.us", "hello"))
        world.work()
        assert world.provider.sent[-1].to.phone == phone
    assert "/merge/" not in page(merger, "/admin/contacts/")
    assert Chat.objects.get() == one
