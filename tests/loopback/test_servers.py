"""The stand-ins behave as the providers' documents say."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest

from memoryproject.foundation.integrations.loopback.providers import body_bytes, sign
from memoryproject.foundation.integrations.whatsapp.cloud.parse import parse_cloud, verify_signature
from memoryproject.foundation.integrations.whatsapp.events import OwnSend, StatusUpdate
from memoryproject.foundation.integrations.whatsapp.green.parse import (
    parse_green,
    verify_token,
)
from tests.loopback.graph import GraphServer
from tests.loopback.green import GreenServer

MESSAGE: dict[str, Any] = {
    "messaging_product": "whatsapp",
    "recipient_type": "individual",
    "to": "15550100123",
    "type": "text",
    "text": {"body": "hello"},
}


class Inbox:
    """A memory server's webhook: keeps what comes, answers with the statuses it is given."""

    def __init__(self) -> None:
        self.received: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                inbox.received.append((headers, body))
                self.send_response(inbox.answers.pop(0) if inbox.answers else 200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    found = Inbox()
    yield found
    found.close()


def post(url: str, payload: Any, token: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with httpx.Client(trust_env=False) as client:
        return client.post(url, json=payload, headers=headers)


@pytest.mark.parametrize("version", ["", "/v24.0"])
def test_graph_accepts_a_text(version: str) -> None:
    with GraphServer(access_token="t") as graph:
        url = f"{graph.url}{version}/{graph.phone_number_id}/messages"
        answers = [post(url, MESSAGE, "t").json() for _ in range(2)]

    assert answers[0]["contacts"] == [{"input": "15550100123", "wa_id": "15550100123"}]
    ids = [answer["messages"][0]["id"] for answer in answers]
    assert len(set(ids)) == 2


@pytest.mark.parametrize(
    ("path", "token", "changes", "status", "code"),
    [
        ("/v24.0/999/messages", "t", {}, 400, 100),
        ("/100000000000001/media", "t", {}, 400, 100),
        ("/100000000000001/messages", "", {}, 401, 190),
        ("/100000000000001/messages", "wrong", {}, 401, 190),
        ("/100000000000001/messages", "t", {"messaging_product": "sms"}, 400, 100),
        ("/100000000000001/messages", "t", {"to": ""}, 400, 100),
        ("/100000000000001/messages", "t", {"type": "hologram"}, 400, 131051),
        ("/100000000000001/messages", "t", {"text": {}}, 400, 100),
        ("/100000000000001/messages", "t", {"text": {"body": "x" * 4097}}, 400, 100),
        ("/100000000000001/messages", "t", {"status": "read", "message_id": "x"}, 400, 131009),
    ],
)
def test_graph_refuses(
    path: str, token: str, changes: dict[str, Any], status: int, code: int
) -> None:
    with GraphServer(access_token="t") as graph:
        answer = post(graph.url + path, {**MESSAGE, **changes}, token)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert graph.sent == []
    assert len(graph.requests) == 1


def test_graph_reports_what_became_of_a_message(inbox: Inbox) -> None:
    with GraphServer(access_token="t", app_secret="s", webhook_url=inbox.url) as graph:
        url = f"{graph.url}/{graph.phone_number_id}/messages"
        answer = post(url, {**MESSAGE, "biz_opaque_callback_data": "turn-1"}, "t").json()
        graph.wait_until_reported()

    events = [event for _, body in inbox.received for event in parse_cloud(json.loads(body))]
    for headers, body in inbox.received:
        assert verify_signature(secret="s", body=body, header=headers["x-hub-signature-256"])
    assert all(isinstance(event, StatusUpdate) for event in events)
    told = [(e.status, e.provider_message_id, e.callback_id) for e in events]  # type: ignore[attr-defined]
    wamid = answer["messages"][0]["id"]
    assert told == [(status, wamid, "turn-1") for status in ("sent", "delivered", "read")]
    assert graph.outcomes == [200, 200, 200]


def test_refused_webhooks_are_posted_again(inbox: Inbox) -> None:
    inbox.answers = [500, 503]
    with GraphServer(access_token="t", webhook_url=inbox.url, statuses=("sent",)) as graph:
        post(f"{graph.url}/{graph.phone_number_id}/messages", MESSAGE, "t")
        graph.wait_until_reported()

    assert len(inbox.received) == 3
    assert len({body for _, body in inbox.received}) == 1
    assert graph.outcomes == [200]


def test_green_reports_the_own_send_and_what_became_of_it(inbox: Inbox) -> None:
    with GreenServer(token="t", webhook_token="w", webhook_url=inbox.url) as green:
        url = f"{green.url}/waInstance{green.id_instance}/sendMessage/t"
        answer = post(url, {"chatId": "15550100123@c.us", "message": "hello"}).json()
        green.wait_until_reported()

    events = []
    for headers, body in inbox.received:
        assert verify_token(expected="w", header=headers["authorization"])
        events += parse_green(json.loads(body))
    own, *statuses = events
    assert isinstance(own, OwnSend)
    assert (own.provider_message_id, own.text) == (answer["idMessage"], "hello")
    assert [event.status for event in statuses if isinstance(event, StatusUpdate)] == [
        "sent",
        "delivered",
        "read",
    ]


@pytest.mark.parametrize(
    ("path", "payload", "status"),
    [
        ("/waInstance1101000001/sendMessage/wrong", {}, 401),
        ("/waInstance7/sendMessage/t", {}, 401),
        ("/elsewhere", {}, 404),
        ("/waInstance1101000001/sendHologram/t", {}, 404),
        ("/waInstance1101000001/sendMessage/t", {"chatId": "15550100123"}, 400),
        ("/waInstance1101000001/sendMessage/t", {"message": ""}, 400),
        ("/waInstance1101000001/sendMessage/t", {"message": "x" * 20_001}, 400),
    ],
)
def test_green_refuses(path: str, payload: dict[str, Any], status: int) -> None:
    body = {"chatId": "15550100123@c.us", "message": "hello", **payload}
    with GreenServer(token="t") as green:
        answer = post(green.url + path, body)

    assert answer.status_code == status
    assert green.sent == []


def test_a_chosen_port_is_free_again_afterwards() -> None:
    with GreenServer(token="t") as first:
        port = int(first.url.rpartition(":")[2])
    with GreenServer(token="t", port=port) as second:
        assert second.url == first.url


def test_signature_is_metas() -> None:
    body = body_bytes({"text": "café"})

    assert body == b'{"text":"caf\\u00e9"}'
    assert verify_signature(secret="s", body=body, header=sign("s", body))
