"""Pages of other origins, compressed answers, weak ETags, and the server that the schema names."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from memoryproject.environment import Origins
from tests.api.calling import Api, error_of
from tests.tables import table

PAGE = "https://app.example.com"
ALLOW = "Access-Control-Allow-Origin"


@table(
    ("text", "found"),
    [
        ("https://App.Example.com/", ["https://app.example.com"]),
        ("https://a.example:443, http://b.example:80", ["https://a.example", "http://b.example"]),
        ("http://localhost:5173,http://[::1]:80", ["http://localhost:5173", "http://[::1]"]),
        ("chrome-extension://abcdef", ["chrome-extension://abcdef"]),
        ("*", ["*"]),
    ],
)
def test_origins_are_read_as_browsers_write_them(text: str, found: list[str]) -> None:
    assert Origins("").parse(text) == found
    for wrong in ("app.example.com", "https://a.example/path", "null"):
        assert not Origins("").is_valid(wrong)


def preflight(api: Api, path: str, origin: str = PAGE) -> Any:
    return Api(None, api.client).call(
        "OPTIONS",
        path,
        Origin=origin,
        Access_Control_Request_Method="PATCH",
        Access_Control_Request_Headers="authorization, x-stainless-os",
    )


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/v1/chats/", "/v1/models", "/mcp"])
def test_an_allowed_page_may_call(path: str, api: Api, settings: Any) -> None:
    assert not preflight(api, path).has_header(ALLOW)
    settings.CORS_ALLOWED_ORIGINS = [PAGE]
    asked = preflight(api, path)
    assert (asked.status_code, asked[ALLOW]) == (204, PAGE)
    assert asked["Access-Control-Allow-Headers"] == "authorization, x-stainless-os"
    assert "PATCH" in asked["Access-Control-Allow-Methods"]
    assert not asked.has_header("Access-Control-Allow-Credentials")
    # A page must see why it is refused.
    refused = Api(None, api.client).call("POST", path, {}, Origin=PAGE)
    assert (refused.status_code >= 400, refused[ALLOW]) == (True, PAGE)
    assert {"ETag", "RateLimit-Remaining", "Idempotent-Replayed", "X-Request-ID"} < set(
        refused["Access-Control-Expose-Headers"].split(", ")
    )
    for origin in ("https://evil.example", f"{PAGE}.evil.example", "http://app.example.com"):
        other = preflight(api, path, origin)
        assert not other.has_header(ALLOW)
        assert "Origin" in other["Vary"]
    settings.CORS_ALLOWED_ORIGINS = ["*"]
    assert preflight(api, path, "https://any.example")[ALLOW] == "https://any.example"


@pytest.mark.django_db
def test_the_pages_of_staff_are_for_no_other_page(api: Api, settings: Any) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["*"]
    for path in ("/admin/login/", "/healthz", "/webhooks/whatsapp/cloud/"):
        assert not api.get(path, Origin=PAGE).has_header(ALLOW)


@pytest.mark.django_db
def test_answers_are_compressed_and_their_etags_understood(api: Api) -> None:
    text = "We open at nine. " * 50
    path = f"memories/{api.post('memories/', {'content': text}).json()['memory_id']}/"
    plain = api.get(path)
    small = api.get(path, Accept_Encoding="gzip")
    assert (plain.has_header("Content-Encoding"), small["Content-Encoding"]) == (False, "gzip")
    assert gzip.decompress(small.content) == plain.content
    refused = api.get(path, Accept_Encoding="gzip;q=0, *;q=0.5")
    assert (refused.content, "Accept-Encoding" in refused["Vary"]) == (plain.content, True)
    assert small["ETag"] == f"W/{plain['ETag']}"
    assert api.get(path, If_None_Match=small["ETag"]).status_code == 304
    changed = api.call("PATCH", path, {"pinned": True}, If_Match=small["ETag"])
    assert changed.status_code == 200
    error_of(api.call("PATCH", path, {"pinned": False}, If_Match=small["ETag"]), 412)
    error_of(api.delete(path, If_Match=f'"other", {small["ETag"]}'), 412)
    assert api.delete(path, If_Match=f'"other", W/{changed["ETag"]}').status_code == 200
    asked = {"whatsapp_chat": "15550100123@c.us", "content": "/help", "stream": True}
    events = api.post("chat/", asked, Accept_Encoding="gzip")
    assert not events.has_header("Content-Encoding")
    assert b"".join(events).startswith(b"event: accepted")


@pytest.mark.django_db
def test_a_change_that_is_repeated_with_its_key_is_made_once(api: Api) -> None:
    path = f"memories/{api.post('memories/', {'content': 'We open at nine'}).json()['memory_id']}/"
    change = {"content": "We open at ten"}
    first = api.call("PATCH", path, change, Idempotency_Key="k")
    api.call("PATCH", path, {"content": "We open at eleven"})
    again = api.call("PATCH", path, change, Idempotency_Key="k")
    assert (again.content, again["Idempotent-Replayed"]) == (first.content, "true")
    assert again["ETag"] == first["ETag"]
    assert api.get(path).json()["content"] == "We open at eleven"
    assert error_of(api.call("PATCH", path, {"pinned": True}, Idempotency_Key="k"), 422)


@pytest.mark.django_db
def test_the_schema_names_the_server_that_was_asked(api: Api) -> None:
    answer = api.get("/api/schema/?format=json", Host="localhost:8123")
    assert answer.json()["servers"] == [{"url": "http://localhost:8123"}]
