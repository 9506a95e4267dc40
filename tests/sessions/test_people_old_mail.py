"""Webhooks come late: what was written before a person moved on changes nothing afterwards."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from memoryproject.foundation.integrations.whatsapp.events import (
    AddressChanged,
    InboundMessage,
    MessageRevoked,
    Party,
)
from sessions_app.models import Chat, Message
from tests.world import CLIENT, NUMBER_ID, World, message_from

NEW_NUMBER = "15550100789@c.us"


def number_change() -> AddressChanged:
    return AddressChanged(
        provider="cloud",
        number_id=NUMBER_ID,
        delivery_key="change",
        old=Party(phone="15550100123"),
        new=Party(phone="15550100789"),
        timestamp=timezone.now(),
    )


def moved(world: World) -> None:
    world.say(CLIENT, "from the old number")
    world.receive(number_change())


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


def revoked(message: InboundMessage, party: Party, group_id: str | None = None) -> MessageRevoked:
    return MessageRevoked(
        provider="cloud",
        number_id=NUMBER_ID,
        delivery_key=f"revoked-{message.provider_message_id}",
        original_id=message.provider_message_id,
        party=party,
        timestamp=timezone.now(),
        group_id=group_id,
    )


def test_a_revocation_before_the_change_meets_its_message_after_it(world: World) -> None:
    world.say(CLIENT, "from the old number")
    later = timezone.now() + timedelta(seconds=5)
    message = message_from(CLIENT, "forget this at once", timestamp=later)
    world.receive(revoked(message, message.party))
    world.receive(number_change())
    world.receive(message)
    stored = Message.objects.get(provider_message_id=message.provider_message_id)
    assert stored.chat != Chat.objects.get(whatsapp_chat=NEW_NUMBER)
    assert stored.content == ""
    assert stored.revoked_at is not None


def test_a_revocation_after_the_change_meets_its_message_of_before(world: World) -> None:
    message = message_from(CLIENT, "forget this at once")
    world.receive(message)
    world.receive(number_change())
    later = timezone.now() + timedelta(seconds=5)
    world.receive(message_from(CLIENT, "I am new here", timestamp=later))
    world.receive(revoked(message, message.party))
    stored = Message.objects.get(provider_message_id=message.provider_message_id)
    assert (stored.chat, stored.content) == (Chat.objects.get(whatsapp_chat=NEW_NUMBER), "")
    assert [kept.content for kept in world.messages(CLIENT)] == ["I am new here"]


def test_an_early_revocation_by_somebody_else_is_not_applied(world: World) -> None:
    world.say(CLIENT, "one")
    world.say(NEW_NUMBER, "two")
    message = message_from(CLIENT, "this stays")
    world.receive(revoked(message, Party(phone="15550100789")))
    world.receive(message)
    assert Message.objects.filter(content="this stays", revoked_at__isnull=True).exists()


def test_an_early_revocation_from_a_group_is_not_applied_elsewhere(world: World) -> None:
    world.say(CLIENT, "in the group", group_id="120363000000000001")
    message = message_from(CLIENT, "this stays")
    world.receive(revoked(message, message.party, group_id="120363000000000001"))
    world.receive(message)
    assert Message.objects.filter(content="this stays", revoked_at__isnull=True).exists()
