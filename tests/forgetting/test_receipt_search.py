"""A receipt is found by the person's number and by the request's, and says who wanted it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.models import Chat, ForgetReceipt, ForgetRun
from tests.forgetting.pages import RECEIPTS, text
from tests.forgetting.test_pages import choose, work
from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.django_db
OMAR = "972550100101@c.us"


def erase(staff: Client, chat: Chat, **request: str) -> Any:
    address = choose(staff, "sessions_app_chat", chat.pk).replace("/change/", "/confirm/")
    answer = staff.post(address, {"typed": chat.whatsapp_chat, **request}, follow=True)
    work()
    return answer


@pytest.fixture
def omar(world: World) -> Chat:
    for address in (OMAR, CLIENT):
        party = Party(phone=address.partition("@")[0], name="Omar")
        world.receive(message_from(address, "hello", party=party))
    return world.chat(OMAR)


def found(staff: Client, asked: str) -> list[ForgetReceipt]:
    return list(staff.get(RECEIPTS, {"q": asked}).context["cl"].queryset)


@pytest.mark.parametrize(
    "written", [OMAR, "972550100101", "+972 55-010-0101", "00972550100101", "055-010-0101"]
)
def test_found_by_the_number(admin_client: Client, omar: Chat, settings: Any, written: str) -> None:
    settings.GODFATHER_PHONE = ["972501234567@c.us"]
    erase(admin_client, omar)
    assert not Chat.objects.filter(whatsapp_chat=OMAR).exists()
    (receipt,) = found(admin_client, written)
    assert receipt.kind == "chat"
    assert "550100101" not in str(vars(receipt))


def test_by_a_local_number(admin_client: Client, world: World, omar: Chat, settings: Any) -> None:
    settings.GODFATHER_PHONE = []
    neighbour = Party(phone="972521112222", name="Neta")
    world.receive(message_from("972521112222@c.us", "hello", party=neighbour))
    erase(admin_client, omar)
    assert len(found(admin_client, "055-010-0101")) == 1


def test_who_is_still_there_is_found_as_well(admin_client: Client, omar: Chat) -> None:
    message = omar.messages.filter(role="user").first()
    assert message is not None
    address = choose(admin_client, "sessions_app_message", message.pk)
    admin_client.post(address.replace("/change/", "/confirm/"), {"typed": "FORGET"})
    work()
    (receipt,) = found(admin_client, "055-010-0101")
    assert receipt.kind == "message"
    page = admin_client.get(f"/admin/contacts/{omar.pk}/").content.decode()
    assert reverse("admin:sessions_app_forgetreceipt_change", args=[receipt.pk]) in page


def test_a_receipt_says_who_asked_and_under_which_number(admin_client: Client, omar: Chat) -> None:
    erase(admin_client, omar, requester="representative", request_number="DSR-2026/17")
    (receipt,) = found(admin_client, "DSR-2026/17")
    shown = [
        admin_client.get(f"{RECEIPTS}{receipt.pk}/change/").content.decode(),
        text(admin_client.get(f"{RECEIPTS}{receipt.receipt_id}/text/")),
        text(admin_client.get(f"/admin/sessions_app/forgetrun/{ForgetRun.objects.get().pk}/text/")),
    ]
    for page in shown:
        assert "DSR-2026/17" in page
        assert "somebody on the person" in page
        assert "admin" in page


@pytest.mark.parametrize(
    "request_values",
    [
        {"request_number": "Omar of the bakery"},
        {"request_number": "x" * 41},
        {"request_number": "<b>"},
        {"requester": "nobody"},
    ],
)
def test_what_is_no_number_erases_nothing(
    admin_client: Client, omar: Chat, request_values: dict[str, str]
) -> None:
    erase(admin_client, omar, **request_values)
    assert ForgetRun.objects.get().state == "draft"
    assert Chat.objects.filter(pk=omar.pk).exists()
