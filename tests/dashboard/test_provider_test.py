"""“Send me a message”, against stand-ins of the providers: what it says and what it keeps."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import connection
from django.test import Client

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.loopback.httpd import Answer
from memoryproject.foundation.integrations.loopback.providers import graph_error
from memoryproject.foundation.text.phone_numbers import number_read
from memoryproject.staff_site.operations import provider_test
from memoryproject.staff_site.operations.provider_test import TEXT
from tests.dashboard.staff import page
from tests.loopback.graph import GraphServer
from tests.loopback.green import GreenServer, quota_error
from tests.loopback.httpd import DrippingAnswer, Fault
from tests.shown import found_in, words_of

pytestmark = pytest.mark.django_db

PAGE = "/admin/operations/provider/"
TOKEN, GREEN_TOKEN = "cloud-token-abcdef", "green-token-abcdef"
NUMBER, TYPED = "972501234567", "+972 50-123 4567"


@pytest.fixture
def graph(settings: Any) -> Iterator[GraphServer]:
    with GraphServer(access_token=TOKEN) as server:
        settings.WHATSAPP_CLOUD_API_URL = f"{server.url}/v24.0"
        settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID = server.phone_number_id
        settings.WHATSAPP_CLOUD_ACCESS_TOKEN = TOKEN
        yield server


@pytest.fixture
def green(settings: Any) -> Iterator[GreenServer]:
    with GreenServer(token=GREEN_TOKEN) as server:
        settings.GREEN_API_URL = server.url
        settings.GREEN_API_ID_INSTANCE = server.id_instance
        settings.GREEN_API_TOKEN = GREEN_TOKEN
        yield server


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_test, "QUIET_SECONDS", 0.2)
    monkeypatch.setattr(provider_test, "MAX_SECONDS", 0.8)
    cache.clear()


def form(client: Client, **changes: str) -> dict[str, str]:
    """What a browser posts."""
    once = found_in(r'name="once" value="([^"]+)"', page(client, PAGE))
    return {"provider": "cloud", "number": TYPED, "do": "send", "once": once, **changes}


def tried(client: Client, status: int = 200, **changes: str) -> str:
    answer = client.post(PAGE, form(client, **changes))
    assert answer.status_code == status
    assert "no-store" in answer["Cache-Control"]
    shown = answer.content.decode()
    return words_of(shown[shown.index('class="ops"') :])


def test_a_message_is_sent_and_credentials_good(admin_client: Client, graph: GraphServer) -> None:
    shown = tried(admin_client, do="check", number="")
    assert "The credentials are good." in shown
    assert "display_phone_number 15550100001" in shown
    assert graph.sent == []
    shown = tried(admin_client)
    (sent,) = graph.sent
    assert (sent["to"], sent["text"]["body"]) == (NUMBER, TEXT)
    assert "The provider took the message." in shown
    assert sent["id"] in shown
    assert re.search(r"Time taken \d\.\d\d seconds", shown)
    # A provider without its settings is not offered.
    shown = page(admin_client, PAGE)
    assert ('value="cloud"' in shown, 'value="green"' in shown) == (True, False)
    assert "GREEN_API_ID_INSTANCE, GREEN_API_TOKEN" in shown


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("authorized", "The credentials are good."),
        ("notAuthorized", "Scan the QR code"),
        ("blocked", "WhatsApp has blocked the number."),
        ("somethingNew", "The instance is not ready."),
    ],
)
def test_green_api_sends_and_the_state_of_its_instance_is_told(
    admin_client: Client, green: GreenServer, state: str, told: str
) -> None:
    shown = tried(admin_client, provider="green")
    (sent,) = green.sent
    assert (sent["chatId"], sent["message"]) == (f"{NUMBER}@c.us", TEXT)
    assert sent["idMessage"] in shown
    green.state = state
    assert told in tried(admin_client, do="check", provider="green")


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (
            Fault(answer=graph_error(190, f"Session expired {TOKEN}", status=401)),
            ["it is wrong or has expired", "Session expired •••"],
        ),
        (
            Fault(answer=graph_error(131047, "Re-engagement message")),
            ["has not written to you in the last 24 hours"],
        ),
        (Fault(no_answer="hang"), ["did not answer in time: nobody knows"]),
        (Fault(no_answer="reset"), ["did not answer in time: nobody knows"]),
        (
            Fault(answer=DrippingAnswer(200, {}, content=b"x" * 400, drip=0.1)),
            ["did not answer in time"],
        ),
        (Fault(answer=Answer(502, {"a": "b"})), ["nobody knows whether"]),
    ],
)
def test_what_went_wrong_is_told_with_what_to_do(
    admin_client: Client, graph: GraphServer, fault: Fault, told: list[str]
) -> None:
    """Soon, also where the provider doesn't answer."""
    graph.fail_next(fault)
    shown = tried(admin_client)
    for text in told:
        assert text in shown
    assert TOKEN not in shown


@pytest.mark.parametrize("what", ["send", "check"])
def test_wrong_settings_are_told(
    admin_client: Client, graph: GraphServer, green: GreenServer, settings: Any, what: str
) -> None:
    settings.WHATSAPP_CLOUD_ACCESS_TOKEN = "another-token"
    shown = tried(admin_client, do=what)
    assert "Meta does not accept the access token" in shown
    assert "Make a permanent token" in shown
    assert "HTTP 401: Invalid OAuth access token" in shown
    assert "another-token" not in shown
    settings.GREEN_API_TOKEN = "wrong-green-token"
    shown = tried(admin_client, provider="green", do=what)
    assert "Green API does not accept the token." in shown
    assert "wrong-green-token" not in shown
    settings.WHATSAPP_CLOUD_ACCESS_TOKEN = TOKEN
    settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID = "999"
    assert "does not know this phone number id" in tried(admin_client, do="check")
    settings.WHATSAPP_CLOUD_API_URL = "http://127.0.0.1:1/v24.0"
    assert "The provider can't be reached." in tried(admin_client, do=what)
    assert graph.sent == []


def test_a_check_that_is_not_answered_and_a_quota_are_told(
    admin_client: Client, graph: GraphServer, green: GreenServer
) -> None:
    graph.fail_next_get(Fault(no_answer="hang"))
    shown = tried(admin_client, do="check")
    assert "The provider did not answer in time." in shown
    assert "nobody knows" not in shown
    green.fail_next(Fault(answer=quota_error()))
    assert "The plan's quota of chats is used up." in tried(admin_client, provider="green")


def test_forged_forms_and_no_number_send_nothing(admin_client: Client, graph: GraphServer) -> None:
    assert "with its country code" in tried(admin_client, status=400, number="0501234567")
    for changes in (
        *({"once": "forged"}, {"once": ""}),
        *({"provider": "green"}, {"provider": "console"}, {"provider": "\x00"}),
    ):
        assert admin_client.post(PAGE, form(admin_client, **changes)).status_code == 400
    assert graph.requests == []


def test_a_page_that_is_sent_again_sends_nothing_twice_and_after_many_tests_one_waits(
    admin_client: Client, graph: GraphServer
) -> None:
    posted = form(admin_client)
    assert admin_client.post(PAGE, posted).status_code == 200
    again = admin_client.post(PAGE, posted)
    assert again.status_code == 429
    assert "This test was made already." in again.content.decode()
    for _ in range(provider_test.TESTS - 1):
        tried(admin_client)
    assert "Wait a few minutes." in tried(admin_client, status=429)
    assert len(graph.sent) == provider_test.TESTS


def test_the_number_is_kept_nowhere(
    admin_client: Client, graph: GraphServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    tried(admin_client)
    graph.fail_next(Fault(answer=graph_error(100, "no")))
    tried(admin_client)
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.object_id, event.details) == ("provider.test", "cloud", {})
    ours = [record for record in caplog.records if not record.name.startswith("httpcore")]
    assert NUMBER not in "\n".join(record.getMessage() for record in ours)
    for session in Session.objects.all():
        assert NUMBER not in str(session.get_decoded())
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_stat_user_tables WHERE schemaname = current_schema()"
        )
        for (table,) in cursor.fetchall():
            cursor.execute(
                f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE %s', [f"%{NUMBER}%"]
            )
            assert cursor.fetchone() == (0,), table


@pytest.mark.parametrize(
    ("typed", "digits"),
    [
        ("+972 50-123-4567", "972501234567"),
        ("00972501234567", "972501234567"),
        ("(1) 555.010.0123", "15550100123"),
        ("\u200e+15550100123\u202c", "15550100123"),
        *((each, None) for each in ("", "12", "no number", "+", "9" * 16, "\u202e12")),
        ("+٩٧٢ ٥٠‑١٢٣‑٤٥٦٧", "972501234567"),
        ("۰۰۹۷۲۵۰۱۲۳۴۵۶۷", "972501234567"),
        ("+972 (0)50 123 4567", "972501234567"),
        *((each, None) for each in ("972501234567@c.us", "²³²³²³²³", "1" * 5_000)),
    ],
)
def test_numbers_are_read_as_people_write_them(typed: str, digits: str | None) -> None:
    assert number_read(typed) == digits
