"""One address, with a port and a path, behind two proxies: Caddy as deployed, and this test.

The test stands in for the outer proxy, by real HTTP: it terminates TLS and names host and scheme.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from http.cookies import SimpleCookie
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urljoin

import httpx
import pytest

from memoryproject.foundation.process.narrowing import present
from tests.processes import plain_http
from tests.processes.front_door import EVERYBODY, FrontDoor
from tests.processes.installation import Installation, prepared

pytestmark = pytest.mark.processes

ADDRESS = "https://memory.example.com:8443/bot"
HOST = "memory.example.com:8443"
ADMIN = {"username": "admin", "password": "a long enough password"}
LINK = re.compile(r'(?:href|src|action|data-home|data-session)="([^"#]+)')
ELSEWHERE = ("data:", "?")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    settings = {
        "BASE_URL": ADDRESS,
        "SHOW_SETUP": "false",
        "TRUSTED_PROXIES": "2",
        "ADMIN_PASSWORD": ADMIN["password"],
        "MEMORY_PATH": "/bot",
        "MEMORY_OUTER_PROXIES": EVERYBODY,
    }
    folder: Path = tmp_path_factory.mktemp("address")
    with prepared(folder, **settings) as installation:
        installation.manage("ensure_admin")
        FrontDoor(installation).start()
        yield installation


class Browser:
    """Opens pages of ADDRESS, whose place behind the outer proxy is ``behind``."""

    def __init__(self, behind: str) -> None:
        self._behind = behind
        self.cookies: SimpleCookie = SimpleCookie()

    def ask(
        self,
        url: str,
        data: dict[str, str] | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> httpx.Response:
        assert url.startswith(f"{ADDRESS}/"), url
        path = "/" + url.removeprefix(f"{ADDRESS}/")
        sent = {
            "Host": HOST,
            "X-Forwarded-Proto": "https",
            "X-Forwarded-For": "203.0.113.9",
            "Cookie": "; ".join(f"{each.key}={each.value}" for each in self.cookies.values()),
            **({"Origin": "https://" + HOST} if data is not None else {}),
            **headers,
        }
        method = "GET" if data is None else "POST"
        found = plain_http.request(method, self._behind + path, headers=sent, data=data, timeout=60)
        for line in found.headers.get_list("Set-Cookie"):
            self.cookies.load(line)
        return found

    def log_in(self) -> httpx.Response:
        page = self.ask(f"{ADDRESS}/admin/login/")
        token = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)[0]
        typed = {**ADMIN, "csrfmiddlewaretoken": token, "next": "/bot/admin/"}
        return self.ask(f"{ADDRESS}/admin/login/", typed)


PLACES = ("cut off by Caddy", "cut off before", "never cut off")
FIRST_PAGES = ("/", "/admin/", "/admin/sessions_app/chat/", "/admin/operations/", "/api/docs/")


def browser_at(place: str, server: Installation) -> Browser:
    places = {
        "cut off by Caddy": f"{server.url}/bot",
        "cut off before": server.url,
        "never cut off": f"http://{present(server.front_door).addresses['web']}/bot",
    }
    return Browser(places[place])


@pytest.fixture(params=PLACES)
def browser(request: pytest.FixtureRequest, server: Installation) -> Browser:
    return browser_at(request.param, server)


def links_of(page: httpx.Response) -> set[str]:
    """Its links to pages and files, as a browser completes them."""
    found = {link for link in LINK.findall(page.text) if not link.startswith(ELSEWHERE)}
    return {urljoin(ADDRESS, unescape(link)) for link in found}


def test_each_link_of_the_first_pages_leads_to_this_server(server: Installation) -> None:
    """The links are the same at each place, so that each is asked for at one of them, by turns."""
    browsers = [browser_at(place, server) for place in PLACES]
    found: list[dict[str, set[str]]] = []
    for browser in browsers:
        logged_in = browser.log_in()
        assert (logged_in.status_code, logged_in.headers["Location"]) == (302, "/bot/admin/")
        pages = {page: browser.ask(ADDRESS + page) for page in FIRST_PAGES}
        assert {page: shown.status_code for page, shown in pages.items()} == dict.fromkeys(
            pages, 200
        )
        found.append({page: links_of(shown) for page, shown in pages.items()})
    assert found[0] == found[1] == found[2]
    links = sorted(set().union(*found[0].values()))
    assert len(links) > 40
    for number, link in enumerate(links):
        # 405: a form's address; 503: /readyz misses the programs that work.
        answer = browsers[number % len(browsers)].ask(link)
        assert answer.status_code in (200, 302, 401, 405, 503), link


def test_cookies_are_for_the_path_and_for_https(browser: Browser) -> None:
    browser.log_in()
    for name in ("sessionid", "csrftoken"):
        assert (browser.cookies[name]["path"], browser.cookies[name]["secure"]) == ("/bot", True)


def test_the_api_follows_the_address(browser: Browser, server: Installation) -> None:
    name = f"pages-{id(browser)}"
    token = server.manage("create_api_token", name, "--scope", "read", "--scope", "write").strip()
    key = {"Authorization": f"Bearer {token}"}
    for content in ("We open at 9", "We close at 5", "We rest on Sunday"):
        body = {"content": f"{content} {name}", "visibility": "public"}
        made = plain_http.post(f"{server.url}/bot/api/v1/memories/", json=body, headers=key)
        assert made.status_code == 201, made.text
    page = browser.ask(f"{ADDRESS}/api/v1/memories/?limit=2", headers=key).json()
    assert page["next"].startswith(f"{ADDRESS}/api/v1/memories/?")
    following = browser.ask(page["next"], headers=key).json()
    assert following["previous"].startswith(f"{ADDRESS}/api/v1/memories/?")
    schema = browser.ask(f"{ADDRESS}/api/schema/?format=json").json()
    assert schema["servers"] == [{"url": ADDRESS}]
    assert "/api/v1/memories/" in schema["paths"]
    assert browser.ask(f"{ADDRESS}/mcp", {}, headers=key).status_code == 400


def test_webhooks_and_health_checks_are_found(browser: Browser) -> None:
    assert browser.ask(f"{ADDRESS}/webhooks/whatsapp/cloud/", {}).status_code == 401
    for path in ("/healthz", "/metrics"):
        assert browser.ask(ADDRESS + path).status_code == 200


@pytest.mark.parametrize(
    "invented",
    [
        {"SCRIPT_NAME": "/bot"},
        {"SCRIPT_NAME": "/evil"},
        {"PATH_INFO": "/evil"},
        {"X-Forwarded-Prefix": "/evil"},
        {"X-Forwarded-Protocol": "evil"},
        {"X-Forwarded-Ssl": "off"},
        {"X-Forwarded-Port": "evil"},
        {"X-Forwarded-Proto": "evil, https"},
    ],
)
def test_no_header_moves_the_server(invented: dict[str, str], browser: Browser) -> None:
    shown = browser.ask(f"{ADDRESS}/admin/login/", headers=invented)
    assert shown.status_code == 200
    assert "evil" not in shown.text
    assert links_of(shown) == links_of(browser.ask(f"{ADDRESS}/admin/login/"))


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"X-Forwarded-Host": "evil.example"}, {"Host": "a b<i>"}]
)
def test_another_host_is_refused_and_the_setting_named(
    headers: dict[str, str], browser: Browser, server: Installation
) -> None:
    for path in ("/api/v1/memories/", "/mcp", "/webhooks/whatsapp/cloud/"):
        refused = browser.ask(ADDRESS + path, headers=headers)
        assert refused.status_code == 400, path
        if refused.text.startswith("{"):
            (error,) = refused.json()["errors"]
            assert error["code"] == "host_not_allowed"
            assert "BASE_URL" in error["detail"]
            assert "ALLOWED_HOSTS" in error["detail"]


def test_the_log_has_one_line_of_many_refusals(server: Installation) -> None:
    for _ in range(20):
        refused = plain_http.get(f"{server.url}/admin/", headers={"Host": "evil.example"})
        assert refused.status_code == 400
    printed = (server.folder / "logs" / "memory.log").read_text(encoding="utf-8")
    assert printed.count("isn't allowed: see BASE_URL") == 1
