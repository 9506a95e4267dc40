"""The page on which staff let an application use the MCP server."""

from __future__ import annotations

import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from memoryproject.foundation.rest_kit.models import ApiToken
from tests.browser.visit import serious
from tests.mcp.application import VERIFIER, challenge_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


class Callback(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<h1>Connected</h1>")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def callback() -> Iterator[str]:
    """Where the application waits for the answer."""
    server = HTTPServer(("127.0.0.1", 0), Callback)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/callback"
    server.shutdown()
    server.server_close()


def test_consent_leads_back_to_the_application(
    staff: Page, live_server: LiveServer, callback: str
) -> None:
    metadata = {"client_name": "My assistant", "redirect_uris": [callback]}
    address = f"{live_server.url}/oauth/register"
    registered = httpx.post(address, json=metadata, trust_env=False, timeout=60).json()
    query = {
        "response_type": "code",
        "client_id": registered["client_id"],
        "redirect_uri": callback,
        "code_challenge": challenge_of(VERIFIER),
        "state": "s",
    }
    staff.goto(f"/oauth/authorize?{urllib.parse.urlencode(query)}")
    expect(staff.get_by_role("heading", name="Connect an application")).to_be_visible()
    expect(staff.get_by_text("My assistant").first).to_be_visible()
    assert serious(staff) == []
    staff.set_viewport_size({"width": 390, "height": 844})
    assert staff.evaluate("document.documentElement.scrollWidth") == 390
    staff.get_by_label("All chats").check()
    staff.get_by_role("button", name="Allow").click()
    expect(staff.get_by_role("heading", name="Connected")).to_be_visible()
    assert "code=" in staff.url
    assert ApiToken.objects.get().name == "My assistant"
