"""A provider that refuses our account: staff see it everywhere, and one click sends what waits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.contrib.auth.models import Permission, User
from django.core import checks
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memoryproject.foundation.integrations.configured import configured_providers
from memoryproject.staff_site.alerts import alerts_update, current_conditions
from memoryproject.staff_site.models import Alert
from sessions_app.models import Turn
from sessions_app.turns.queue import chat_answer, next_quick_chat
from tests.loopback.graph import GraphServer
from tests.loopback.green import GreenServer
from tests.webhooks.posting import post_cloud, post_green
from tests.webhooks.test_numbers import FIRST, green_said, said
from tests.world import World

pytestmark = pytest.mark.django_db

SEND = "admin:sessions_app_turn_send_held"
Ask = Callable[[str, int], Any]


@pytest.fixture
def page() -> Client:
    browser = Client()
    browser.force_login(User.objects.create_superuser("admin", password="a-password"))
    return browser


@pytest.fixture(params=["cloud", "green"])
def outage(
    request: pytest.FixtureRequest, client: Client, settings: Any, world: World
) -> Iterator[tuple[GraphServer | GreenServer, Ask]]:
    """A provider whose token is another one by now, and a way to ask by it."""
    server: GraphServer | GreenServer
    if request.param == "cloud":
        server = GraphServer(access_token="renewed")
        settings.WHATSAPP_CLOUD_API_URL = f"{server.url}/v24.0"
        settings.WHATSAPP_CLOUD_ACCESS_TOKEN = "expired"
    else:
        server = GreenServer(token="renewed")
        settings.GREEN_API_URL, settings.GREEN_API_TOKEN = server.url, "expired"
    world.use(providers=configured_providers())

    def ask(text: str, person: int) -> Any:
        phone = f"1555010020{person}"
        if request.param == "cloud":
            post_cloud(client, said(FIRST, text, by=phone))
        else:
            body = green_said(1101000001)
            body["idMessage"] = text
            body["senderData"] = {"chatId": f"{phone}@c.us", "sender": f"{phone}@c.us"}
            body["messageData"]["textMessageData"]["textMessage"] = text
            post_green(client, body)
        world.work()

    with server:
        yield server, ask


def warnings() -> list[str]:
    """What `manage.py check` says of it."""
    with mock.patch.object(sys, "argv", ["manage.py", "check"]):
        return [str(found.msg) for found in checks.run_checks() if found.id == "memory.W022"]


def sent(server: GraphServer | GreenServer) -> list[str]:
    texts = [each.get("message") or each["text"]["body"] for each in server.sent]
    return [text.rpartition("answer to: ")[2] for text in texts]


def test_an_expired_token_is_shown_and_one_click_sends_what_waits(
    outage: tuple[GraphServer | GreenServer, Ask], world: World, page: Client, settings: Any
) -> None:
    server, ask = outage
    assert warnings() == []
    for person, text in enumerate(("too old", "one", "two")):
        ask(text, person)
    for address in ("/admin/", reverse("admin:operations")):
        text = page.get(address).content.decode()
        assert "refuses our account" in text
        assert "3 answers wait." in text
        assert "Since " in text
    (warning,) = warnings()
    assert "Answers that wait: 3" in warning
    for _ in range(2):
        alerts_update(current_conditions(timezone.now()), [], timezone.now())
    assert Alert.objects.filter(key__startswith="service:").count() == 1
    assert sent(server) == []

    oldest = Turn.objects.earliest("id")
    Turn.objects.filter(pk=oldest.pk).update(asked_at=timezone.now() - timedelta(hours=25))
    settings.WHATSAPP_CLOUD_ACCESS_TOKEN = settings.GREEN_API_TOKEN = "renewed"
    world.use(providers=configured_providers())
    told = [page.post(reverse(SEND), follow=True).content.decode() for _ in range(2)]
    assert "3 answers are sent now." in told[0]
    assert "No answer is held any more." in told[1]
    # In the order in which the program that answers takes them.
    while chat_id := next_quick_chat(besides=[], now=timezone.now()):
        chat_answer(chat_id=chat_id, dependencies=world.dependencies)
    assert sent(server) == ["one", "two"]
    assert warnings() == []
    alerts_update(current_conditions(timezone.now()), [], timezone.now())
    assert "refuses our account" not in page.get("/admin/").content.decode()
    assert not Alert.objects.filter(key__startswith="service:", over_at=None).exists()


def test_a_refusal_is_shown_where_nothing_waits_any_more(
    outage: tuple[GraphServer | GreenServer, Ask], world: World, page: Client
) -> None:
    _, ask = outage
    ask("one", 1)
    Turn.objects.update(asked_at=timezone.now() - timedelta(hours=25), not_before=timezone.now())
    world.work()
    assert Turn.objects.get().state == "failed"
    text = page.get("/admin/").content.decode()
    assert "refuses our account" in text
    assert "Send now" not in text


def state(name: str) -> dict[str, Any]:
    return {
        "typeWebhook": "stateInstanceChanged",
        "instanceData": {"idInstance": 1101000001, "wid": "15550100001@c.us"},
        "timestamp": int(timezone.now().timestamp()),
        "stateInstance": name,
    }


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [("notAuthorized", True), ("blocked", True), ("starting", False), ("yellowCard", False)],
)
def test_green_api_reports_the_state_itself(
    client: Client, page: Client, name: str, is_refused: bool
) -> None:
    post_green(client, state(name))
    assert ("refuses our account" in page.get("/admin/").content.decode()) == is_refused
    assert len(warnings()) == is_refused
    post_green(client, state("authorized"))
    assert "refuses our account" not in page.get("/admin/").content.decode()


def test_what_is_held_follows_when_green_api_is_authorized(
    client: Client, world: World, settings: Any
) -> None:
    with GreenServer(token="renewed") as server:
        settings.GREEN_API_URL, settings.GREEN_API_TOKEN = server.url, "expired"
        world.use(providers=configured_providers())
        post_green(client, green_said(1101000001))
        world.work()
        settings.GREEN_API_TOKEN = "renewed"
        world.use(providers=configured_providers())
        world.work()
        assert sent(server) == []
        post_green(client, state("authorized"))
        world.work()
        assert sent(server) == ["a private matter"]


@pytest.mark.parametrize(
    ("rights", "banner", "button"),
    [
        (["view_chat"], False, False),
        (["view_turn"], True, False),
        (["view_turn", "rerun_turn"], True, True),
    ],
)
def test_the_banner_is_for_those_who_may_see_answers(
    client: Client, world: World, settings: Any, rights: list[str], banner: bool, button: bool
) -> None:
    with GraphServer(access_token="renewed") as server:
        settings.WHATSAPP_CLOUD_API_URL = f"{server.url}/v24.0"
        world.use(providers=configured_providers())
        post_cloud(client, said(FIRST, "one"))
        world.work()
    user = User.objects.create_user("dana", password="a-password", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    browser = Client()
    browser.force_login(user)
    text = browser.get("/admin/").content.decode()
    assert ("refuses our account" in text, "Send now" in text) == (banner, button)
