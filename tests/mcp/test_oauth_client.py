"""The MCP package's own OAuth client connects itself to a real server, with a scripted browser."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from tests.mcp.clients import refusal, told
from tests.mcp.test_clients import new_chat, remember_recall_forget
from tests.processes.installation import Installation

pytestmark = pytest.mark.processes

REDIRECT = "http://127.0.0.1:9/callback"
PASSWORD = "a-password-of-the-tests"
MAKE_STAFF = f"""
from django.contrib.auth.models import User
if not User.objects.filter(username="boss"):
    User.objects.create_superuser("boss", password="{PASSWORD}")
"""
EXPIRE = """
from django.utils import timezone
from memoryproject.foundation.rest_kit.models import ApiToken
ApiToken.objects.filter(grant__isnull=False).update(expires_at=timezone.now())
"""


class Storage:
    """What the client keeps between its runs."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """A person who logs in, and consents to what ``form`` says."""

    def __init__(self, form: dict[str, object]) -> None:
        self.form = form
        self.consents = 0
        self._found = ""

    async def open(self, address: str) -> None:
        with httpx.Client(trust_env=False, timeout=60) as http:
            page = http.get(address)
            while page.status_code in (301, 302):
                place = urljoin(str(page.url), page.headers["Location"])
                if place.startswith(REDIRECT):
                    self._found = place
                    return
                page = http.get(place)
                if page.status_code == 200:
                    page = self._send(http, page)

    def _send(self, http: httpx.Client, page: httpx.Response) -> httpx.Response:
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
        assert token is not None, page.text
        form: dict[str, object] = {"csrfmiddlewaretoken": token[1]}
        if page.url.path.endswith("/login/"):
            form |= {"username": "boss", "password": PASSWORD}
            form["next"] = parse_qs(page.url.query.decode())["next"][0]
        else:
            self.consents += 1
            form |= {"name": "Assistant", "allow": "1", **self.form}
        return http.post(page.url, data=form, headers={"Referer": str(page.url)})

    async def callback(self) -> AuthorizationCodeResult:
        told = {name: values[0] for name, values in parse_qs(urlsplit(self._found).query).items()}
        return AuthorizationCodeResult(code=told["code"], state=told["state"], iss=told["iss"])


@pytest.fixture
def staffed(installation: Installation) -> Installation:
    installation.manage("shell", "-v", "0", "-c", MAKE_STAFF)
    return installation


def connection(at: str, storage: Storage, browser: Browser) -> OAuthClientProvider:
    metadata = OAuthClientMetadata(client_name="Assistant", redirect_uris=[AnyUrl(REDIRECT)])
    return OAuthClientProvider(at, metadata, storage, browser.open, browser.callback)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_the_official_client_connects_itself_and_stays_connected(
    era: str, path: str, staffed: Installation
) -> None:
    own, other = new_chat(), new_chat()
    storage = Storage()
    browser = Browser({"scopes": ["read", "write", "forget"], "chats": own})

    address = f"{staffed.url}{path}"
    auth = connection(address, storage, browser)

    async def visit() -> None:
        async with httpx2.AsyncClient(auth=auth, timeout=60, trust_env=False) as http:
            transport = streamable_http_client(address, http_client=http)
            async with Client(transport, mode=era) as client:
                await remember_recall_forget(client, own)
                asked = {"query": "anything", "whatsapp_chat": other}
                assert refusal(await client.call_tool("recall", asked))

    asyncio.run(visit())
    assert browser.consents == 1
    first = storage.tokens
    assert first is not None
    staffed.manage("shell", "-v", "0", "-c", EXPIRE)
    # By its own clock the client knows, and refreshes the token.
    auth.context.token_expiry_time = 1
    asyncio.run(visit())
    assert browser.consents == 1
    assert storage.tokens is not None
    assert storage.tokens.access_token != first.access_token


def test_the_official_client_asks_for_the_scope_that_it_lacks(staffed: Installation) -> None:
    storage, browser = Storage(), Browser({"scopes": ["read"], "every_chat": "on"})

    async def visit() -> None:
        address = f"{staffed.url}/mcp"
        auth = connection(address, storage, browser)
        async with httpx2.AsyncClient(auth=auth, timeout=60, trust_env=False) as http:
            transport = streamable_http_client(address, http_client=http)
            async with Client(transport) as client:
                assert "remember" not in {tool.name for tool in (await client.list_tools()).tools}
                browser.form["scopes"] = ["read", "write"]
                fact = {"content": "TestCorp pays in 30 days", "whatsapp_chat": new_chat()}
                assert told(await client.call_tool("remember", fact))

    asyncio.run(visit())
    assert browser.consents == 2


def test_a_log_of_all_this_holds_no_secret(staffed: Installation) -> None:
    logged = staffed.output() + Path(staffed.folder / "logs" / "memory.log").read_text()
    assert "mem_" not in logged
    assert "Traceback" not in logged
