"""After WhatsApp's window has closed, staff send a template; Green API has no window."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import ChatPause, Message, OutboundPart, Turn
from tests.dashboard.senders import INSTANCE, sending_by_cloud, sending_by_green
from tests.loopback.graph import GraphServer
from tests.loopback.green import GreenServer
from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.django_db
READY = {"name": "order_ready", "language": "en_US", "parameters": "Emma\r\n\r\n five o'clock \r\n"}


@pytest.fixture(autouse=True)
def memory_on(settings: Any) -> None:
    settings.ENABLE_MEMORY_SYSTEM = True


@pytest.fixture
def graph(world: World) -> Iterator[GraphServer]:
    with sending_by_cloud(world) as server:
        server.templates[("order_ready", "en_US")] = 2
        world.receive(message_from(CLIENT, "Hi"))
        world.work()
        server.sent.clear()
        silent_for_a_day()
        yield server


@pytest.fixture
def green(world: World) -> Iterator[GreenServer]:
    with sending_by_green(world) as server:
        world.receive(message_from(CLIENT, "Hi", provider="green", number_id=INSTANCE))
        world.work()
        silent_for_a_day()
        yield server


def silent_for_a_day() -> None:
    then = timezone.now() - timedelta(hours=25)
    Message.objects.update(timestamp=then)
    Turn.objects.update(asked_at=then)


def post(client: Client, world: World, what: str, form: dict[str, str]) -> Any:
    address = f"/admin/sessions_app/turn/takeover/{world.chat(CLIENT).pk}/{what}/"
    answer = client.post(address, {"key": str(uuid.uuid4()), **form})
    world.work()
    return answer


def panel(client: Client, world: World) -> str:
    page = client.get(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/")
    found = re.search(r'<section id="takeover".*?</section>', page.content.decode(), re.S)
    assert found
    return found[0]


def test_the_box_says_that_the_window_is_closed_and_offers_a_template(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    shown = panel(admin_client, world)
    assert "window has been closed since" in shown
    assert 'id="takeover-text"' not in shown
    assert "/template/" in shown
    assert "stands for {{1}}" in shown


def test_while_the_window_is_open_there_is_the_reply_box(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    world.receive(message_from(CLIENT, "Hello again"))
    shown = panel(admin_client, world)
    assert 'name="text"' in shown
    assert "/template/" not in shown


def test_it_goes_out_as_metas_template(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    assert post(admin_client, world, "template", READY).status_code == 302
    (sent,) = graph.sent
    assert (sent["type"], sent["to"]) == ("template", CLIENT.split("@")[0])
    values = [{"type": "text", "text": "Emma"}, {"type": "text", "text": "five o'clock"}]
    assert sent["template"] == {
        "name": "order_ready",
        "language": {"code": "en_US"},
        "components": [{"type": "body", "parameters": values}],
    }
    message = Message.objects.latest("received_at")
    assert message.content == "order_ready (en_US)\nEmma\nfive o'clock"
    assert (message.kind, message.role) == ("template", "assistant")
    assert message.provider_message_id == sent["id"]
    assert message.delivery_status == "sent"
    page = admin_client.get(
        f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/"
    ).content.decode()
    assert "article</span> Template" in page
    assert ChatPause.objects.exists()


def test_one_without_variables(admin_client: Client, world: World, graph: GraphServer) -> None:
    post(admin_client, world, "template", {"name": "hello_world", "language": "en_US"})
    assert graph.sent[0]["template"] == {"name": "hello_world", "language": {"code": "en_US"}}


def test_nothing_of_its_values_is_left_beside_the_message(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    post(admin_client, world, "template", READY)
    turn = Turn.objects.get(by_hand=True)
    assert "Emma" not in str(turn.context)
    assert OutboundPart.objects.get(turn=turn).content == ""
    event = AuditEvent.objects.get(action="takeover.template")
    assert (event.actor, event.object_id) == ("admin", str(turn.turn_id))
    assert event.details == {"name": "order_ready", "language": "en_US"}


def test_the_same_form_sends_once(admin_client: Client, world: World, graph: GraphServer) -> None:
    form = {**READY, "key": str(uuid.uuid4())}
    for _ in range(2):
        assert post(admin_client, world, "template", form).status_code == 302
    assert len(graph.sent) == 1


@pytest.mark.parametrize(
    ("name", "parameters"), [("unheard_of", ""), ("order_ready", "Only one value")]
)
def test_what_meta_refuses_fails_and_can_be_seen(
    admin_client: Client, world: World, graph: GraphServer, name: str, parameters: str
) -> None:
    form = {"name": name, "language": "en_US", "parameters": parameters}
    post(admin_client, world, "template", form)
    assert graph.sent == []
    turn = Turn.objects.get(by_hand=True)
    assert turn.state == "failed"
    assert "(#13200" in turn.error
    assert Message.objects.latest("received_at").delivery_status == "failed"


def test_one_that_failed_is_sent_again_though_the_window_is_closed(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    approved = graph.templates.pop(("order_ready", "en_US"))
    post(admin_client, world, "template", READY)
    turn = Turn.objects.get(by_hand=True)
    assert turn.state == "failed"
    Turn.objects.filter(pk=turn.pk).update(asked_at=timezone.now() - timedelta(hours=30))
    graph.templates[("order_ready", "en_US")] = approved
    form = {"action": "send_again", "_selected_action": [turn.pk], "post": "yes"}
    admin_client.post("/admin/sessions_app/turn/", form)
    world.work()
    assert [sent["template"]["name"] for sent in graph.sent] == ["order_ready"]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"name": "Order Ready"}, "A template&#x27;s name has small letters"),
        ({"language": "english"}, "Write the language as Meta does"),
        ({"parameters": "x" * 1_025}, "Write each value on a line of its own"),
        ({"parameters": "a\n" * 21}, "Write each value on a line of its own"),
        ({"parameters": "far      apart"}, "Write each value on a line of its own"),
        ({"key": "none"}, "The form was broken"),
        ({"name": "a\x00b"}, "The form was broken"),
    ],
)
def test_what_could_not_go_out_is_refused_and_kept(
    admin_client: Client, world: World, graph: GraphServer, changed: dict[str, str], problem: str
) -> None:
    answer = post(admin_client, world, "template", {**READY, **changed})
    assert answer.status_code == 409
    page = answer.content.decode()
    assert problem in page
    if "parameters" not in changed:
        assert "five o&#x27;clock" in page
    assert not Turn.objects.filter(by_hand=True).exists()


def test_by_green_api_staff_reply_at_any_time(
    admin_client: Client, world: World, green: GreenServer
) -> None:
    shown = panel(admin_client, world)
    assert 'name="text"' in shown
    assert "WhatsApp takes replies until" not in shown
    assert post(admin_client, world, "reply", {"text": "Still there?"}).status_code == 302
    assert green.sent[-1]["message"] == "Still there?"


def test_green_api_has_no_templates(admin_client: Client, world: World, green: GreenServer) -> None:
    answer = post(admin_client, world, "template", READY)
    assert answer.status_code == 409
    assert "only the Cloud API has templates" in answer.content.decode()
    assert not Turn.objects.filter(by_hand=True).exists()
