"""manage.py webhook_endpoint."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from sessions_app.models import Chat
from tests.hooks.receiver import Receiver

pytestmark = pytest.mark.django_db
PUBLIC = "https://1.1.1.1/hooks"


@pytest.fixture
def loopback(settings: Any) -> None:
    """As a deployment allows its own network."""
    settings.WEBHOOKS_ALLOW_HTTP = True
    settings.WEBHOOKS_PRIVATE_NETWORKS = ["127.0.0.0/8"]


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("webhook_endpoint", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def refused(*arguments: str) -> CommandError:
    with pytest.raises(CommandError) as error:
        run(*arguments)
    return error.value


def test_add_prints_the_secret_alone_and_list_never() -> None:
    printed = run("add", "crm", PUBLIC, "--event", "card.made", "--chat", "15550100123@c.us")
    endpoint = WebhookEndpoint.objects.get()
    assert printed == endpoint.secret + "\n"
    assert printed.startswith("whsec_")
    assert endpoint.event_types == ["card.made"]
    assert endpoint.chat_ids == [Chat.objects.get().pk]
    assert endpoint.secret not in run("list") + run("list", "--json")
    (shown,) = json.loads(run("list", "--json"))
    assert (shown["name"], shown["state"], shown["bound"]) == ("crm", "enabled", True)
    assert run("list").startswith("crm: enabled")
    assert AuditEvent.objects.get(action="webhook.create").actor_kind == "command"


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "crm", "http://1.1.1.1/"),
        ("add", "crm", "https://10.0.0.1/"),
        ("add", "", PUBLIC),
        ("add", "crm", PUBLIC, "--chat", "nobody"),
        ("rotate", "crm", "--keep-hours", "-1"),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert refused(*arguments).returncode == 2
    assert not WebhookEndpoint.objects.exists()
    assert not Chat.objects.exists()


@pytest.mark.parametrize("action", ["rotate", "enable", "disable", "remove", "test"])
def test_an_endpoint_that_isn_t_there_is_refused(action: str) -> None:
    error = refused(action, "nobody")
    assert error.returncode == 1
    assert "'nobody'" in str(error)


def test_a_name_is_given_once() -> None:
    run("add", "crm", PUBLIC)
    assert "already" in str(refused("add", "crm", PUBLIC))


def test_rotate_disable_enable_and_remove() -> None:
    first = run("add", "crm", PUBLIC).strip()
    second = run("rotate", "crm", "--keep-hours", "0").strip()
    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.secret, endpoint.old_secret) == (second, "")
    third = run("rotate", "crm").strip()
    assert WebhookEndpoint.objects.get().old_secret == second
    assert len({first, second, third}) == 3
    run("disable", "crm")
    assert "disabled" in run("list")
    run("enable", "crm")
    assert WebhookEndpoint.objects.get().enabled
    run("remove", "crm")
    assert not WebhookEndpoint.objects.exists()


def test_test_says_what_the_receiver_answered(loopback: None, receiver: Receiver) -> None:
    secret = run("add", "crm", receiver.url, "--event", "turn.failed").strip()
    assert "204" in run("test", "crm")
    assert [event["type"] for event in receiver.events(secret)] == ["webhook.test"]
    receiver.status = 500
    error = refused("test", "crm")
    assert (error.returncode, "500" in str(error)) == (1, True)
    receiver.status = 200
    assert "200" in run("test", "crm"), "also right after it failed"
    states = WebhookDelivery.objects.order_by("id").values_list("state", flat=True)
    assert list(states) == ["delivered", "pending", "delivered"]
    run("disable", "crm")
    assert "disabled" in str(refused("test", "crm"))
    assert len(receiver.requests) == 3
