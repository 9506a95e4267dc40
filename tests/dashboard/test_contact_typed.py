"""Staff name a contact in a form as they know it: by name, number or id."""

from __future__ import annotations

import pytest
from django.test import Client

from memories_app.models import Memory
from sessions_app.models import Chat, ChatAddress
from tests.world import World

pytestmark = pytest.mark.django_db

ADD = "/admin/memories_app/memory/add/"
DANA, TWIN = "972550100101@c.us", "15550100101@c.us"


@pytest.fixture
def dana(world: World) -> Chat:
    world.say(DANA, "Hello")
    world.say("972550100199@c.us", "Hello")
    Chat.objects.filter(whatsapp_chat=DANA).update(client_name="Dana", staff_name="דנה לוי")
    return world.chat(DANA)


def add(client: Client, named: str) -> str:
    form = {"content": "Likes tea", "type": "fact", "visibility": "chat", "whatsapp_chat": named}
    return client.post(ADD, form, follow=True).content.decode()


@pytest.mark.parametrize(
    "named",
    [
        DANA,
        "+972 55-010-0101",
        "055-010-0101",
        "972550100101",
        " dana ",
        "דנה לוי",
        "\u2068דנה לוי\u2069",
        "\u2066+972 55-010-0101\u2069",
    ],
)
def test_a_contact_is_named_as_people_know_it(admin_client: Client, dana: Chat, named: str) -> None:
    add(admin_client, named)
    assert Memory.objects.get().chat_id == dana.pk


@pytest.mark.parametrize("named", ["Dan", "0101", "somebody", "15550100999@c.us"])
def test_a_part_or_an_unknown_name_is_refused(admin_client: Client, dana: Chat, named: str) -> None:
    page = add(admin_client, named)
    assert "No contact has this name or number." in page
    assert f'value="{named}"' in page
    assert not Memory.objects.exists()


def test_several_contacts_of_one_name_are_asked_about(
    admin_client: Client, world: World, dana: Chat
) -> None:
    world.say(TWIN, "Hello")
    Chat.objects.filter(whatsapp_chat=TWIN).update(client_name="DANA")
    assert "Several contacts have this name or number" in add(admin_client, "dana")
    assert not Memory.objects.exists()


def test_a_number_that_somebody_left_names_nobody(admin_client: Client, dana: Chat) -> None:
    Chat.objects.filter(pk=dana.pk).update(whatsapp_chat="IL.1@bsuid")
    link = ChatAddress.objects.get(chat=dana)
    link.left_at = link.created_at
    link.save()
    assert "No contact has this name or number." in add(admin_client, "+972 55-010-0101")
