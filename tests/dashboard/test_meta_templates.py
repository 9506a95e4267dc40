"""Meta's list of templates, their previews, what goes out, and who wants no marketing messages."""

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
from memoryproject.foundation.integrations.whatsapp.cloud.parse import parse_cloud
from sessions_app.models import Chat, ChatAccess, Message
from tests.dashboard.senders import conversation, post, sending_by_cloud, silent_for_a_day, takeover
from tests.loopback.graph import GraphServer
from tests.world import CLIENT, NUMBER_ID, World, message_from

pytestmark = pytest.mark.django_db

WHOLE: dict[str, Any] = {
    "name": "order_ready",
    "language": "en_US",
    "status": "APPROVED",
    "category": "UTILITY",
    "parameter_format": "NAMED",
    "components": [
        {"type": "HEADER", "format": "DOCUMENT", "example": {"header_handle": ["https://x.y"]}},
        {"type": "BODY", "text": "Hello {{name}}, order {{order_no}} is ready, {{name}}."},
        {"type": "FOOTER", "text": "Test Bakery"},
        {
            "type": "BUTTONS",
            "buttons": [
                {"type": "URL", "text": "Track", "url": "https://x.y/o/{{1}}"},
                {"type": "URL", "text": "Shop", "url": "https://x.y/"},
                {"type": "QUICK_REPLY", "text": "Thanks"},
                {"type": "COPY_CODE", "text": "Copy"},
            ],
        },
    ],
}
BODY_ONLY: dict[str, Any] = {
    "name": "sale",
    "language": "he",
    "category": "MARKETING",
    "components": [
        {"type": "HEADER", "format": "TEXT", "text": "{{1}}!"},
        {"type": "BODY", "text": "{{2}} after {{1}}"},
    ],
}
OTHERS: list[dict[str, Any]] = [
    {"name": "waits", "language": "en", "status": "PENDING", "components": []},
    {"name": "pin", "language": "en", "components": [{"type": "HEADER", "format": "LOCATION"}]},
    {"name": "spin", "language": "en", "components": [{"type": "HEADER", "format": "GIF"}]},
    {"name": "plain", "language": "en", "category": "UTILITY", "components": []},
]
VALUES = ["https://x.y/a%20bill.pdf", "Emma", "17", "o17", "", "SAVE10"]


@pytest.fixture
def graph(world: World, settings: Any) -> Iterator[GraphServer]:
    with sending_by_cloud(world) as server:
        settings.WHATSAPP_CLOUD_API_URL = f"{server.url}/v24.0"
        settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID = server.phone_number_id
        settings.WHATSAPP_CLOUD_ACCESS_TOKEN = "token"
        settings.WHATSAPP_BUSINESS_ACCOUNT_ID = server.business_account_id
        world.receive(message_from(CLIENT, "Is it open?"))
        world.work()
        silent_for_a_day()
        server.sent.clear()
        server.template_list = [WHOLE, BODY_ONLY, *OTHERS]
        server.templates = {("order_ready", "en_US"): 2, ("sale", "he"): 2, ("plain", "en"): 0}
        yield server


def listed(client: Client, world: World, **chosen: str) -> str:
    answer = client.get(takeover(world, "templates/"), chosen)
    assert answer.status_code == 200
    return answer.content.decode()


def form(about: dict[str, Any], *values: str, **more: str) -> dict[str, Any]:
    fields = {f"value-{place}": value for place, value in enumerate(values)}
    return {"name": about["name"], "language": about["language"], **fields, **more}


def test_the_list_has_the_approved_ones_of_all_pages_and_is_asked_for_once(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    for _ in range(2):
        shown = listed(admin_client, world)
    names = re.findall(r'href="\?name=(\w+)&amp;language=(\w+)"', shown)

    assert names == [
        ("order_ready", "en_US"),
        ("pin", "en"),
        ("plain", "en"),
        ("sale", "he"),
        ("spin", "en"),
    ]
    assert "UTILITY" in shown
    assert len(graph.template_queries) == 3
    assert "templates/" in conversation(admin_client, world)


def test_one_is_previewed_and_sent_with_all_its_parts(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    shown = listed(admin_client, world, name="order_ready", language="en_US")
    assert "Hello {{name}}, order {{order_no}} is ready" in shown
    assert shown.count('name="value-') == len(VALUES)
    preview = post(admin_client, world, "template", **form(WHOLE, *VALUES, do="preview"))
    assert "Hello Emma, order 17 is ready, Emma." in preview.content.decode()
    assert "[Track] [Shop] [Thanks] [Copy]" in preview.content.decode()
    assert graph.sent == []

    key = str(uuid.uuid4())
    for _ in range(2):
        answer = post(admin_client, world, "template", **form(WHOLE, *VALUES, do="send", key=key))
        assert answer.status_code == 302
    [sent] = graph.sent
    link = {"link": VALUES[0], "filename": "a bill.pdf"}
    assert sent["template"] == {
        "name": "order_ready",
        "language": {"code": "en_US"},
        "components": [
            {"type": "header", "parameters": [{"type": "document", "document": link}]},
            {
                "type": "body",
                "parameters": [
                    {"type": "text", "parameter_name": "name", "text": "Emma"},
                    {"type": "text", "parameter_name": "order_no", "text": "17"},
                ],
            },
            {
                "type": "button",
                "sub_type": "url",
                "index": "0",
                "parameters": [{"type": "text", "text": "o17"}],
            },
            {
                "type": "button",
                "sub_type": "copy_code",
                "index": "3",
                "parameters": [{"type": "coupon_code", "coupon_code": "SAVE10"}],
            },
        ],
    }
    message = Message.objects.get(kind="template")
    assert "Hello Emma, order 17 is ready" in message.content


def test_numbered_variables_of_header_and_body(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    post(admin_client, world, "template", **form(BODY_ONLY, "Sale", "17:00", "Monday"))

    text = [{"type": "text", "text": value} for value in ("Sale", "17:00", "Monday")]
    assert graph.sent[0]["template"]["components"] == [
        {"type": "header", "parameters": text[:1]},
        {"type": "body", "parameters": text[1:]},
    ]
    assert Message.objects.get(kind="template").content == "sale (he)\nSale!\n\nMonday after 17:00"
    post(admin_client, world, "template", name="plain", language="en")
    assert "components" not in graph.sent[1]["template"]


def test_an_upload_is_named_by_its_id(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    post(admin_client, world, "template", **form(WHOLE, "123456", *VALUES[1:4], "yes", "A"))

    header, *_, quick, _code = graph.sent[0]["template"]["components"]
    assert header["parameters"] == [{"type": "document", "document": {"id": "123456"}}]
    assert (quick["sub_type"], quick["index"]) == ("quick_reply", "2")
    assert quick["parameters"] == [{"type": "payload", "payload": "yes"}]


@pytest.mark.parametrize(
    ("about", "values", "why"),
    [
        (WHOLE, ["http://x.y", *VALUES[1:]], "begins with https://"),
        (WHOLE, [VALUES[0], "", *VALUES[2:]], "name: write a value"),
        (WHOLE, [VALUES[0], "a     b", *VALUES[2:]], "name: write a value"),
        (WHOLE, [*VALUES[:5], ""], "Copy: write a value"),
        (OTHERS[0], [], "show this template now"),
        (OTHERS[1], [], "a part (location)"),
        (OTHERS[2], [], "a part (gif)"),
    ],
)
def test_what_meta_would_refuse_is_refused(
    admin_client: Client,
    world: World,
    graph: GraphServer,
    about: dict[str, Any],
    values: list[str],
    why: str,
) -> None:
    answer = post(admin_client, world, "template", **form(about, *values))

    assert answer.status_code == 409
    assert why in answer.content.decode()
    assert graph.sent == []


def test_where_meta_lists_nothing_the_form_by_hand_works(
    admin_client: Client, world: World, graph: GraphServer, settings: Any
) -> None:
    settings.WHATSAPP_CLOUD_ACCESS_TOKEN = "expired"
    assert "Invalid OAuth access token" in listed(admin_client, world)
    settings.WHATSAPP_BUSINESS_ACCOUNT_ID = ""
    assert "WHATSAPP_BUSINESS_ACCOUNT_ID" in listed(admin_client, world)
    answer = post(
        admin_client, world, "template", name="order_ready", language="en_US", parameters="a\nb"
    )
    assert answer.status_code == 302
    assert len(graph.sent) == 1


# Who wants no marketing messages


def preference(value: str, seconds: int, **changes: Any) -> dict[str, Any]:
    """The webhook of a person's choice, as Meta's reference shows it."""
    number = CLIENT.split("@")[0]
    about = {
        "wa_id": number,
        "detail": "User requested to stop marketing messages",
        "category": "marketing_messages",
        "value": value,
        "timestamp": seconds,
        **changes,
    }
    whole = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "15550100001", "phone_number_id": NUMBER_ID},
        "contacts": [{"profile": {"name": "Test User"}, "wa_id": number}],
        "user_preferences": [{key: each for key, each in about.items() if each is not None}],
    }
    changed = {"field": "user_preferences", "value": whole}
    return {"object": "whatsapp_business_account", "entry": [{"id": "2", "changes": [changed]}]}


def hear(world: World, *bodies: dict[str, Any]) -> None:
    for body in bodies:
        world.receive(*parse_cloud(body))


def test_no_marketing_template_goes_to_who_stopped_them(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    at = int(timezone.now().timestamp())
    hear(world, preference("stop", at - 5))
    for fields in (form(BODY_ONLY, "a", "b", "c"), form(BODY_ONLY, parameters="a\nb")):
        answer = post(admin_client, world, "template", **fields)
        assert answer.status_code == 409
        assert "marketing message" in answer.content.decode()
    assert graph.sent == []
    assert "no marketing messages" in listed(admin_client, world)
    shown = conversation(admin_client, world)
    assert "The person stopped marketing messages" in shown
    assert "The person stopped them on WhatsApp" in shown
    post(admin_client, world, "template", **form(WHOLE, *VALUES))
    assert len(graph.sent) == 1, "what is no marketing goes out"

    hear(world, preference("resume", at))
    assert "The person allowed marketing messages again" in conversation(admin_client, world)
    post(admin_client, world, "template", **form(BODY_ONLY, "a", "b", "c"))
    assert len(graph.sent) == 2


@pytest.mark.parametrize(
    ("said", "is_stopped"),
    [
        ([("stop", 10), ("resume", 20)], False),
        ([("resume", 20), ("stop", 10)], False),
        ([("stop", 20), ("stop", 20), ("resume", 10)], True),
        ([("resume", 20), ("stop", 20)], True),
        ([("STOP", "20"), ("later", 30)], True),
    ],
)
def test_the_latest_word_holds(world: World, said: list[Any], is_stopped: bool) -> None:
    start = int((timezone.now() - timedelta(days=1)).timestamp())
    for value, seconds in said:
        hear(world, preference(value, start + int(seconds)))

    assert ChatAccess.objects.get().marketing_stopped is is_stopped
    assert Chat.objects.get().whatsapp_chat == CLIENT


def test_it_is_one_person_by_number_and_by_user_id(world: World) -> None:
    at = int(timezone.now().timestamp())
    hear(world, preference("stop", at - 9, user_id="US.1"))
    hear(world, preference("resume", at, wa_id=None, user_id="US.1"))
    hear(world, preference("stop", at, category="other"))

    assert ChatAccess.objects.get().marketing_stopped is False
    actions = AuditEvent.objects.values_list("action", flat=True).order_by("id")
    assert list(actions)[-2:] == ["chat.marketing_stop", "chat.marketing_resume"]
    # Where the choice names nobody, its contact is the person.
    hear(world, preference("stop", at + 1, wa_id=None))
    assert ChatAccess.objects.get().marketing_stopped is True
