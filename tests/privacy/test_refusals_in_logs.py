"""A refused request is one line of the log, without a traceback; a fault keeps its traceback."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.process.logfile import ContentlessJsonFormatter
from memoryproject.foundation.rest_kit.tokens import token_create
from tests.staff.people import person

pytestmark = pytest.mark.django_db

Request = Callable[[Client], int]


def page_without_the_right(client: Client) -> int:
    client.force_login(person("viewer", "Viewer"))
    return client.get("/admin/operations/").status_code


def profile_without_the_right(client: Client) -> int:
    client.force_login(person("viewer", "Viewer"))
    return client.post("/admin/sessions_app/assistantprofile/1/change/", {}).status_code


def form_without_its_token(_: Client) -> int:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("viewer", "Viewer"))
    return client.post("/admin/logout/").status_code


def api_without_a_token(client: Client) -> int:
    return client.get("/api/v1/memories/").status_code


def api_without_the_scope(client: Client) -> int:
    secret = token_create(name="reader", scopes=["read"], actor=COMMAND_LINE).secret
    headers = {"Authorization": f"Token {secret}"}
    return client.post("/api/v1/memories/", {}, headers=headers).status_code


def webhook_without_a_signature(client: Client) -> int:
    address = "/webhooks/whatsapp/cloud/"
    return client.post(address, {}, content_type="application/json").status_code


def handshake_with_a_wrong_token(client: Client) -> int:
    about = {"hub.mode": "subscribe", "hub.verify_token": "wrong", "hub.challenge": "1"}
    return client.get("/webhooks/whatsapp/cloud/", about).status_code


def unknown_host(client: Client) -> int:
    return client.get("/admin/login/", headers={"host": "evil.example"}).status_code


def too_many_fields(client: Client) -> int:
    return client.post("/admin/login/", {f"f{n}": "" for n in range(2_000)}).status_code


def logged() -> str:
    """Return all of the log file so far."""
    path = Path(settings.LOG_DIR) / "memory.log"
    return path.read_text(encoding="utf-8") if path.exists() else ""


@pytest.mark.parametrize(
    ("request_it", "status"),
    [
        (page_without_the_right, 403),
        (profile_without_the_right, 403),
        (form_without_its_token, 403),
        (api_without_a_token, 401),
        (api_without_the_scope, 403),
        (webhook_without_a_signature, 401),
        (handshake_with_a_wrong_token, 403),
        (unknown_host, 400),
        (too_many_fields, 400),
    ],
)
def test_a_refusal_is_one_line(client: Client, request_it: Request, status: int) -> None:
    before = logged()
    assert request_it(client) == status
    added = logged().removeprefix(before)
    (line,) = added.splitlines()
    loggers = (" WARNING django.", " ERROR django.", " WARNING memoryproject.staff_site.middleware")
    assert any(each in line for each in loggers)


@pytest.mark.parametrize(
    ("method", "address", "status", "stays"),
    [
        ("put", "/api/v1/memories/keyed/vexor/vexor/", 400, "/api/v1/memories/keyed/"),
        ("get", "/api/v1/chats/IL.99999999999vexor/", 404, "/api/v1/chats/"),
        ("get", "/api/v1/chats/ויקסור-vexor/", 400, "/api/v1/chats/"),
        ("put", "/api/v1/chats/IL.99999999999vexor/", 405, "/api/v1/chats/"),
        ("get", "/api/v1/chats/vexor/nothing/vexor/", 404, "Not Found: /api/"),
        ("get", "/keyed/of/chat/vexor/", 404, "Not Found: /keyed/of/chat"),
        ("get", "/wp-login.php", 404, "/wp-login.php"),
    ],
)
def test_a_refusal_names_no_person_and_no_key(
    method: str,
    address: str,
    status: int,
    stays: str,
    client: Client,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client.force_login(User.objects.create_superuser("boss"))
    secret = token_create(name="all", scopes=["read", "write"], actor=COMMAND_LINE).secret
    headers = {"Authorization": f"Token {secret}"}
    before = logged()
    response = getattr(client, method)(address, headers=headers)
    assert response.status_code == status
    (line,) = logged().removeprefix(before).splitlines()
    assert stays in line
    as_json = [ContentlessJsonFormatter("%(message)s").format(each) for each in caplog.records]
    assert [json.loads(each)["request"] for each in as_json] == [response["X-Request-ID"]]
    assert "vexor" not in f"{line} {as_json}"


def test_a_fault_of_the_server_keeps_its_traceback() -> None:
    before = logged()
    try:
        raise ValueError("a fault")
    except ValueError as error:
        logging.getLogger("django.request").error(
            "Internal Server Error: %s", "/x", exc_info=error, extra={"status_code": 500}
        )
        logging.getLogger("sessions_app").error("It failed.", exc_info=error)
    added = logged().removeprefix(before)
    assert added.count("Traceback") == 2
