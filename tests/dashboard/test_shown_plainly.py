"""Pages show what a person understands: numbers, words, and nothing where there is nothing."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from memories_app.models import Memory
from sessions_app.models import Chat, Turn
from tests.dashboard.staff import staff_with
from tests.shown import words_of
from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.django_db

GROUP = "120363040000000001@g.us"
SEES = ("sessions_app.view_chat", "sessions_app.view_message", "sessions_app.view_turn")


@pytest.mark.parametrize(
    ("names", "title"),
    [
        ({"client_name": "Dana"}, "Dana (+1 555-010-0123)"),
        ({"client_name": "דנה"}, "\u2068דנה\u2069 (\u2066+1 555-010-0123\u2069)"),
        ({"client_name": ""}, "+1 555-010-0123"),
        ({"whatsapp_chat": "IL.1@bsuid", "client_name": "Dana"}, "Dana (IL.1@bsuid)"),
        ({"whatsapp_chat": GROUP, "is_group": True, "client_name": "Shifts"}, "Shifts"),
        ({"whatsapp_chat": GROUP, "is_group": True, "client_name": ""}, GROUP),
    ],
)
def test_a_chat_is_called_by_name_and_number(names: dict[str, object], title: str) -> None:
    assert str(Chat(**{"whatsapp_chat": CLIENT, **names})) == title


def test_the_inbox_shows_numbers_and_no_ids(admin_client: Client, world: World) -> None:
    world.say(CLIENT, "Hello")
    Chat.objects.create(whatsapp_chat=GROUP, provider="green", is_group=True, client_name="Shifts")
    shown = words_of(admin_client.get("/admin/sessions_app/chat/").content.decode())
    assert "+1 555-010-0123" in shown
    assert "@c.us" not in shown
    assert "@g.us" not in shown


def test_a_message_that_waits_is_not_yet_rated(admin_client: Client, world: World) -> None:
    world.receive(message_from(CLIENT, "Is anybody there?"))
    address = f"/admin/sessions_app/turn/{Turn.objects.get().pk}/change/"
    waiting = words_of(admin_client.get(address).content.decode())
    assert "Not answered yet." in waiting
    assert "Is this a good answer?" not in waiting
    world.work()
    answered = words_of(admin_client.get(address).content.decode())
    assert "Not answered yet." not in answered
    assert "Is this a good answer?" in answered


def test_who_may_not_switch_the_memory_reads_it_in_words(world: World) -> None:
    world.say(CLIENT, "Hello")
    chat = world.chat(CLIENT)
    page = staff_with(*SEES).get(f"/admin/sessions_app/chat/{chat.pk}/change/").content.decode()
    (memory,) = re.findall(r'field-memory">(.*?)</div>\s*</div>', page, re.DOTALL)
    assert words_of(memory).split()[:2] == ["Memory", "on"]
    (kind,) = re.findall(r'field-kind">(.*?)</div>\s*</div>', page, re.DOTALL)
    assert "A person" in words_of(kind)


def test_what_is_not_pinned_or_empty_is_a_dash(admin_client: Client, world: World) -> None:
    world.remember(CLIENT, "TestCorp pays in 30 days")
    memory = Memory.objects.get()
    listed = staff_with("memories_app.view_memory").get("/admin/memories_app/memory/")
    (pin,) = re.findall(r"field-is_pinned[^>]*>(.*?)</td>", listed.content.decode(), re.DOTALL)
    assert words_of(pin) == "–"
    page = admin_client.get(f"/admin/memories_app/memory/{memory.pk}/change/").content.decode()
    (metadata,) = re.findall(r'field-shown_metadata">(.*?)</div>\s*</div>', page, re.DOTALL)
    assert words_of(metadata).split() == ["Metadata", "–"]
