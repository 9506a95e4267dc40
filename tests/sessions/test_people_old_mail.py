"""Webhooks come late: what was written before a person moved on changes nothing afterwards."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from memoryproject.integrations.whatsapp.events import AddressChanged, Party
from sessions_app.models import Chat
from tests.world import CLIENT, NUMBER_ID, World, message_from

NEW_NUMBER = "15550100789@c.us"


def moved(world: World) -> None:
    world.say(CLIENT, "from the old number")
    change = AddressChanged(
        provider="cloud",
        number_id=NUMBER_ID,
        delivery_key="change",
        old=Party(phone="15550100123"),
        new=Party(phone="15550100789"),
        timestamp=timezone.now(),
    )
    world.receive(change)


def test_an_old_message_does_not_bring_the_old_number_back(world: World) -> None:
    moved(world)
    earlier = timezone.now() - timedelta(hours=1)
    world.receive(message_from(CLIENT, "written before", timestamp=earlier))
    chat = Chat.objects.get()
    assert chat.whatsapp_chat == NEW_NUMBER
    assert chat.addresses.get(address=CLIENT).left_at is not None


def test_who_writes_from_the_old_number_later_is_somebody_else(world: World) -> None:
    moved(world)
    later = timezone.now() + timedelta(seconds=5)
    world.receive(message_from(CLIENT, "I am new here", timestamp=later))
    assert Chat.objects.count() == 2
    assert [message.content for message in world.messages(CLIENT)] == ["I am new here"]
