"""Under which address a request came, and the pages for one that the server doesn't know."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory

from memoryproject.staff_site.accounts.lockout import client_address
from memoryproject.staff_site.middleware import OwnAddress
from tests.shown import words

pytestmark = pytest.mark.django_db

ONE = {"Host": "web", "X-Forwarded-Host": "shop.example", "X-Forwarded-Proto": "https"}
BOTH = {
    "Host": "inner",
    "X-Forwarded-For": "198.51.100.1, 203.0.113.9, 10.0.0.2",
    "X-Forwarded-Host": "evil.example, shop.example, web",
    "X-Forwarded-Proto": "http, https, http",
    "X-Forwarded-Port": "1, 8443, 80",
}


@pytest.mark.parametrize(
    ("proxies", "headers", "seen"),
    [
        (0, ONE, "http://web"),
        (0, BOTH, "http://inner"),
        (1, ONE, "https://shop.example"),
        (2, ONE, "https://shop.example"),
        (1, BOTH, "http://web"),
        (2, BOTH, "https://shop.example:8443"),
        (1, {**ONE, "X-Forwarded-Port": "443"}, "https://shop.example"),
        (1, {**ONE, "X-Forwarded-Host": "shop.example:444", "X-Forwarded-Port": "8443"},
         "https://shop.example:444"),
        (1, {"Host": "[::1]", "X-Forwarded-Port": "8000"}, "http://[::1]:8000"),
        (1, {"Host": "web", "X-Forwarded-Port": "8443/evil"}, "http://web"),
        (1, {"Host": "web", "X-Forwarded-Proto": "", "X-Forwarded-Host": ""}, "http://web"),
        (1, {"Host": "web", "X-Forwarded-Prefix": "/evil"}, "http://web"),
    ],
)  # fmt: skip
def test_each_header_counts_from_the_outermost_trusted_proxy(
    proxies: int, headers: dict[str, str], seen: str, settings: Any
) -> None:
    settings.TRUSTED_PROXIES, settings.ALLOWED_HOSTS = proxies, ["*"]
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if proxies else None
    request = RequestFactory(REMOTE_ADDR="10.0.0.3").get("/admin/", headers=headers)
    OwnAddress(lambda _: HttpResponse())(request)
    assert request.build_absolute_uri("/") == f"{seen}/"
    if headers is BOTH:
        assert client_address(request) == ["10.0.0.3", "10.0.0.2", "203.0.113.9"][proxies]


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/bot/admin/", "/admin/"),
        ("/admin/", "/admin/"),
        ("/bot", "/"),
        ("/bot/", "/"),
        ("/bottle/", "/bottle/"),
        ("/bot/bot/admin/", "/bot/admin/"),
    ],
)
def test_the_path_of_the_address_may_be_cut_off(path: str, seen: str, settings: Any) -> None:
    settings.FORCE_SCRIPT_NAME = "/bot"
    request = RequestFactory().get(path)
    OwnAddress(lambda _: HttpResponse())(request)
    assert (request.path_info, request.path) == (seen, f"/bot{seen}")


def test_cookies_of_other_sites_on_the_host_do_not_count(settings: Any) -> None:
    """A browser sends those of the longer path first."""
    sent = {"cookie": "sessionid=ours; csrftoken=a=b; sessionid=theirs"}
    settings.FORCE_SCRIPT_NAME = "/bot"
    request = RequestFactory().get("/bot/admin/", headers=sent)
    OwnAddress(lambda _: HttpResponse())(request)
    assert request.COOKIES == {"sessionid": "ours", "csrftoken": "a=b"}


@pytest.fixture
def lines(settings: Any, tmp_path: Any, caplog: Any) -> Iterator[Callable[[], list[str]]]:
    """The lines of the log that name BASE_URL."""
    settings.DATA_DIR = tmp_path
    with caplog.at_level(logging.INFO):
        yield lambda: [line for line in caplog.messages if "BASE_URL" in line]


@pytest.mark.parametrize(("language", "text"), [("en", "isn't known under"), ("he", "אינו מוכר")])
@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("evil.example:8443", "evil.example:8443"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("x" * 200, "x" * 100 + "…"),
        ("", ""),
    ],
)
def test_another_host_gets_a_page_that_names_the_setting(
    client: Client, lines: Any, host: str, shown: str, language: str, text: str
) -> None:
    for path in ("/", "/admin/login/", "/healthz"):
        asked = {"host": host, "accept-language": language}
        page = client.get(path, headers=asked)
        assert page.status_code == 400
        assert text in words(page)
        assert f'<code dir="ltr">{shown}</code>' in page.content.decode()
        assert "BASE_URL" in words(page)
        assert "ALLOWED_HOSTS" in words(page)
        assert "<script" not in page.content.decode()
        assert "default-src 'self'" in page["Content-Security-Policy"]
        assert page["X-Request-ID"]
    assert len(lines()) == 1


@pytest.mark.parametrize("path", ["/api/v1/chats/", "/api/none", "/mcp", "/webhooks/whatsapp/x/"])
def test_programs_of_another_host_get_the_error_of_the_api(
    client: Client, lines: Any, path: str
) -> None:
    refused = client.post(path, b"{}" * 1000, "application/json", headers={"host": "<i>evil"})
    assert refused.status_code == 400
    (error,) = refused.json()["errors"]
    assert (refused.json()["type"], error["code"]) == ("client_error", "host_not_allowed")
    assert "BASE_URL" in error["detail"]
    assert "ALLOWED_HOSTS" in error["detail"]
    assert "evil" not in refused.content.decode()
    assert len(lines()) == 1


@pytest.mark.parametrize(
    ("base", "headers", "said"),
    [
        (
            "",
            {"Origin": "https://testserver"},
            ["BASE_URL=https://testserver", "http://testserver"],
        ),
        ("", {"Origin": "http://testserver:81"}, ["BASE_URL=http://testserver:81"]),
        (
            "https://testserver/bot",
            {"Origin": "https://testserver:8443"},
            ["BASE_URL=https://testserver:8443/bot", "knows https://testserver/bot"],
        ),
        ("", {"Origin": "https://evil.example"}, ["Otherwise another site sent the form"]),
        ("", {"Origin": "https://<i>"}, ["https://<i>"]),
        ("", {"Origin": "null"}, ["before you logged in"]),
        ("", {"Origin": "http://testserver"}, ["works only by https", "BASE_URL", "HTTPS_ONLY"]),
        ("", {"Referer": "["}, ["before you logged in"]),
    ],
)
def test_a_form_from_an_unknown_address_names_the_setting(
    base: str, headers: dict[str, str], said: list[str], settings: Any
) -> None:
    settings.BASE_URL, settings.CSRF_COOKIE_SECURE = base, True
    browser = Client(enforce_csrf_checks=True)
    for language in ("en", "he"):
        sent = {**headers, "Accept-Language": language}
        refused = browser.post("/admin/login/", {"username": "x"}, headers=sent)
        assert refused.status_code == 403
        assert "<i>" not in refused.content.decode()
        if language == "en":
            for text in said:
                assert text in words(refused)
        elif "BASE_URL" in said[0]:
            assert said[0] in words(refused)
            assert "שום דבר לא נשמר" in words(refused)
