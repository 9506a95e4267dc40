"""Searches in the lists of messages, deliveries and parts: nothing reads every row's text."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from sessions_app.models import InboundDelivery, Message, OutboundPart, Turn
from sessions_app.recall.staff_search import newest_messages_found
from tests.world import CLIENT, OTHER_CLIENT, World, new_world

pytestmark = pytest.mark.django_db

MESSAGES = "/admin/sessions_app/message/"
DELIVERIES = "/admin/sessions_app/inbounddelivery/"
PARTS = "/admin/sessions_app/outboundpart/"


def found(client: Client, address: str, asked: str) -> set[Any]:
    answer = client.get(address, {"q": asked})
    assert answer.status_code == 200
    return set(answer.context["cl"].queryset.values_list("pk", flat=True))


@pytest.fixture(scope="module")
def two_chats(module_rows: None) -> None:
    world = new_world()
    world.say(CLIENT, "The invoices of March are late")
    world.say(OTHER_CLIENT, "החשבונית לא הגיעה")


@pytest.fixture
def said(two_chats: None, db: None) -> Message:
    """What one client says; another one says something else."""
    return Message.objects.get(chat__whatsapp_chat=CLIENT, role="user")


def test_messages_are_found_by_words_in_both_languages(said: Message, admin_client: Client) -> None:
    other = Message.objects.get(chat__whatsapp_chat=OTHER_CLIENT, role="user")

    assert said.pk in found(admin_client, MESSAGES, "invoice")
    assert other.pk not in found(admin_client, MESSAGES, "invoice")
    assert found(admin_client, MESSAGES, "חשבונית") & {said.pk, other.pk} == {other.pk}
    assert found(admin_client, MESSAGES, "zyqorvane") == set()


def test_messages_are_found_by_ids_and_by_the_chat(said: Message, admin_client: Client) -> None:
    of_chat = set(said.chat.messages.values_list("pk", flat=True))

    assert found(admin_client, MESSAGES, str(said.pk)) == {said.pk}
    assert found(admin_client, MESSAGES, str(said.session_id)) == of_chat
    assert found(admin_client, MESSAGES, str(said.provider_message_id)) == {said.pk}
    assert found(admin_client, MESSAGES, CLIENT) == of_chat
    assert found(admin_client, MESSAGES, "+" + CLIENT.split("@")[0]) == of_chat


def test_deliveries_and_parts_are_found_by_ids_and_by_the_chat(
    said: Message, admin_client: Client
) -> None:
    delivery = InboundDelivery.objects.get(message=said)
    turn = Turn.objects.get(message=said)
    part = OutboundPart.objects.get(turn=turn)

    for asked in (delivery.delivery_key, said.provider_message_id, CLIENT):
        assert found(admin_client, DELIVERIES, str(asked)) == {delivery.pk}
    for asked in (turn.turn_id, part.provider_message_id, CLIENT):
        assert found(admin_client, PARTS, str(asked)) == {part.pk}


@pytest.mark.parametrize("address", [MESSAGES, DELIVERIES, PARTS])
@pytest.mark.parametrize("asked", ["\x00", "%", "'", "?" * 500, "x" * 500, "  "])
def test_whatever_is_searched_for_is_answered(
    said: Message, admin_client: Client, address: str, asked: str
) -> None:
    found(admin_client, address, asked)


def test_no_list_of_endless_rows_counts_more_than_it_can_show(
    said: Message, admin_client: Client
) -> None:
    for address in (MESSAGES, DELIVERIES, PARTS, "/admin/sessions_app/chatsession/"):
        with CaptureQueriesContext(connection) as queries:
            admin_client.get(address)
        counting = [each["sql"] for each in queries if "COUNT(" in each["sql"]]
        assert counting
        assert all("LIMIT" in sql for sql in counting), counting


def test_the_newest_are_found_in_their_order_however_many_are_looked_through_first(
    world: World,
) -> None:
    for number in range(4):
        world.say(CLIENT, f"The invoice {number} is late")
    asked = Message.objects.filter(role="user")
    expected = list(asked.order_by("-received_at", "-order_num"))

    for recent in (0, 1, 2, 3, 100):
        for first, count in ((0, 2), (1, 2), (3, 2), (9, 2)):
            newest = newest_messages_found(asked, "invoices", first, count, recent=recent)
            assert newest == expected[first : first + count]
    assert newest_messages_found(asked, "zyqorvane", 0, 2, recent=1) == []
