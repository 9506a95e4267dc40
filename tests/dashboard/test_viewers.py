"""Who has a conversation open, as the others who have it open are told."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import cache
from django.test import Client

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.conversation_views.session_actions import LASTS_SECONDS
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db
CHATS = "/admin/sessions_app/chat/"
READER = ("view_chat", "view_message")


def staff(name: str, codenames: tuple[str, ...] = READER) -> Client:
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def viewing(client: Client, world: World, chat: str = CLIENT) -> str:
    answer = client.get(f"{CHATS}{world.chat(chat).pk}/viewers/", headers={"X-Live": "yes"})
    return str(answer.json()["text"])


def test_each_is_told_who_else_is_there(world: World) -> None:
    world.say(CLIENT, "hello")
    world.say(OTHER_CLIENT, "hello")
    dana, noa, ron = staff("dana"), staff("noa"), staff("ron")
    assert viewing(dana, world) == ""
    assert viewing(dana, world) == ""
    assert viewing(noa, world) == "dana is viewing"
    assert viewing(ron, world) == "dana, noa are viewing"
    assert viewing(dana, world) == "noa, ron are viewing"
    assert viewing(dana, world, OTHER_CLIENT) == ""
    assert not AuditEvent.objects.filter(action="conversation.read").exists()


def test_who_has_left_is_not_told_any_more(world: World) -> None:
    world.say(CLIENT, "hello")
    dana, noa = staff("dana"), staff("noa")
    viewing(dana, world)
    key = f"viewers:{world.chat(CLIENT).pk}"
    ((number, (name, at)),) = cache.get(key).items()
    cache.set(key, {number: (name, at - LASTS_SECONDS)}, LASTS_SECONDS)
    assert viewing(noa, world) == ""


def test_it_is_for_those_who_may_read_the_conversation(client: Client, world: World) -> None:
    world.say(CLIENT, "hello")
    address = f"{CHATS}{world.chat(CLIENT).pk}/viewers/"
    assert client.get(address, headers={"X-Live": "yes"}).status_code == 401
    for number, missing in enumerate(READER):
        half = staff(f"half{number}", tuple(each for each in READER if each != missing))
        assert half.get(address).status_code == 403
    dana = staff("dana")
    assert dana.post(address).status_code == 405
    assert dana.get(f"{CHATS}{uuid4()}/viewers/").status_code == 404
    assert viewing(dana, world) == ""
