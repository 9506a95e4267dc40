"""OAuth: how applications get tokens, and what those who have no right to them get."""

from __future__ import annotations

import base64
import secrets
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.oauth import oauth_endpoints, provider
from memoryproject.foundation.rest_kit.models import ApiToken, OAuthClient, OAuthGrant
from memoryproject.foundation.rest_kit.tasks import tidy
from memoryproject.foundation.rest_kit.tokens import token_create, token_revoke
from sessions_app.conversations.chat_queries import token_chats
from tests.dashboard.staff import staff_with
from tests.mcp.application import REDIRECT, SERVER, VERIFIER, Application, parameters_of
from tests.mcp.rpc import Rpc
from tests.world import CLIENT, OTHER_CLIENT

pytestmark = pytest.mark.django_db

ATTACKER = "https://attacker.example/callback"


@pytest.fixture
def application() -> Application:
    return Application(client_name="Assistant")


def test_clients_find_the_server_by_its_metadata(application: Application) -> None:
    get = application.http.get
    for path in ("", "/mcp", "/mcp/"):
        found = get(f"/.well-known/oauth-protected-resource{path}").json()
        assert (found["resource"], found["authorization_servers"]) == (f"{SERVER}/mcp", [SERVER])
        assert found["scopes_supported"] == ["read", "write", "forget"]
    for path in ("oauth-protected-resource/api/v1", "oauth-authorization-server/other"):
        assert get(f"/.well-known/{path}").status_code == 404
    found = get("/.well-known/oauth-authorization-server").json()
    assert found == get("/.well-known/openid-configuration").json()
    assert found["issuer"] == SERVER
    assert found["code_challenge_methods_supported"] == ["S256"]
    for name in ("authorization", "token", "registration", "revocation"):
        assert found[f"{name}_endpoint"].startswith(f"{SERVER}/oauth/")


@pytest.mark.parametrize(
    ("base_url", "issuer"),
    [
        ("https://memory.example.com", "https://memory.example.com"),
        ("https://memory.example.com:8443/bot", "https://memory.example.com:8443/bot"),
        ("", SERVER),
    ],
)
def test_behind_a_proxy_the_address_is_that_of_base_url(
    base_url: str, issuer: str, settings: Any, application: Application
) -> None:
    settings.BASE_URL = base_url
    path = urlsplit(base_url).path
    found = application.http.get(f"/.well-known/oauth-authorization-server{path}").json()
    assert found["issuer"] == issuer
    assert found["token_endpoint"] == f"{issuer}/oauth/token"
    told = application.http.post("/mcp/", {}, content_type="application/json")
    metadata = f'resource_metadata="{issuer}/.well-known/oauth-protected-resource/mcp"'
    assert told["WWW-Authenticate"] == f'Bearer {metadata}, scope="read write forget"'


def test_an_application_gets_what_staff_consent_to_and_refreshes_it(
    application: Application,
) -> None:
    form = {"scopes": ["read", "write"], "every_chat": "", "chats": CLIENT}
    tokens = application.connected(form)
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3600)
    assert tokens["scope"] == "read write"
    assert application.status_with(tokens["access_token"]) == 200
    row = ApiToken.objects.get()
    assert (row.name, row.created_by) == ("My assistant", "boss")
    assert row.chat_ids == token_chats([CLIENT])
    stored = f"{vars(row)} {vars(row.grant)}"
    assert not any(tokens[name] in stored for name in ("access_token", "refresh_token"))
    event = AuditEvent.objects.get(action="token.create")
    assert (event.actor_kind, event.actor, event.details["oauth"]) == ("staff", "boss", True)
    again = application.refresh(tokens["refresh_token"]).json()
    assert again["refresh_token"] != tokens["refresh_token"]
    assert application.status_with(again["access_token"]) == 200
    assert application.status_with(tokens["access_token"]) == 401


def test_staff_who_deny_send_the_application_an_error(application: Application) -> None:
    answer = application.decide(application.consent_page(), deny="1")
    told = parameters_of(answer["Location"])
    assert (told["error"], told["state"]) == ("access_denied", "of the application")
    assert "code" not in told
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic", None])
def test_an_application_with_a_secret_needs_it(method: str | None) -> None:
    application = Application(token_endpoint_auth_method=method)
    registered = application.registration.json()
    secret = registered["client_secret"]
    code = application.code()
    assert application.redeem(code).status_code == 401
    assert application.redeem(code, client_secret="wrong").json()["error"] == "invalid_client"
    if method != "client_secret_basic":
        assert application.redeem(code, client_secret=secret).status_code == 200
    else:
        word = base64.b64encode(f"{application.client_id}:{secret}".encode()).decode()
        application.http.defaults["HTTP_AUTHORIZATION"] = f"Basic {word}"
        application.client_id = ""
        form = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
        answer = application.http.post("/oauth/token", {**form, "redirect_uri": REDIRECT})
        assert answer.status_code == 200, answer.content
    assert secret not in str(OAuthClient.objects.values_list())


# Attacks.


def error_of(answer: Any) -> str:
    assert answer.status_code in (400, 401), answer.content
    return str(answer.json()["error"])


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({"code_verifier": "x" * 43}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_request"),
        ({"redirect_uri": ATTACKER}, "invalid_request"),
        ({"redirect_uri": "http://127.0.0.1:1234/callback/"}, "invalid_request"),
        ({"code": "mem_c_guessed"}, "invalid_grant"),
        ({"code": "\0"}, "invalid_grant"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"client_id": "\0"}, "invalid_client"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"resource": f"{SERVER}/api/v1"}, "invalid_target"),
        ({"resource": [f"{SERVER}/mcp", "https://other.example"]}, "invalid_request"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
    ],
)
def test_a_code_is_worth_nothing_with_anything_else_wrong(
    form: dict[str, Any], error: str, application: Application
) -> None:
    given = {"code": application.code(), "redirect_uri": REDIRECT, "code_verifier": VERIFIER}
    given = {"grant_type": "authorization_code", **given, **form}
    assert error_of(application.token(**given)) == error
    assert not OAuthGrant.objects.filter(redeemed=True).exists()


def test_a_code_that_is_used_twice_ends_the_grant(application: Application) -> None:
    code = application.code()
    tokens = application.redeem(code).json()
    assert error_of(application.redeem(code)) == "invalid_grant"
    assert application.status_with(tokens["access_token"]) == 401
    assert error_of(application.refresh(tokens["refresh_token"])) == "invalid_grant"
    assert AuditEvent.objects.get(action="token.revoke").actor_kind == "system"


def test_a_refresh_token_that_is_used_twice_ends_the_grant(application: Application) -> None:
    first = application.connected()
    second = application.refresh(first["refresh_token"]).json()
    assert error_of(application.refresh(first["refresh_token"])) == "invalid_grant"
    assert application.status_with(second["access_token"]) == 401


def test_neither_codes_nor_tokens_of_one_application_serve_another(
    application: Application,
) -> None:
    other = Application(client_name="Other")
    assert error_of(other.redeem(application.code())) == "invalid_grant"
    tokens = application.connected()
    assert error_of(other.refresh(tokens["refresh_token"])) == "invalid_grant"
    for name in ("access_token", "refresh_token"):
        revoked = other.http.post(
            "/oauth/revoke", {"client_id": other.client_id, "token": tokens[name]}
        )
        assert revoked.status_code == 200
    assert application.status_with(tokens["access_token"]) == 200


def test_a_refresh_can_narrow_but_never_widen(application: Application) -> None:
    tokens = application.connected({"scopes": ["read", "write"]})
    for wanted in ("read write forget", "audit", "forget"):
        answer = application.refresh(tokens["refresh_token"], scope=wanted)
        assert error_of(answer) == "invalid_scope"
    narrowed = application.refresh(tokens["refresh_token"], scope="read").json()
    assert narrowed["scope"] == "read"
    assert ApiToken.objects.get().scopes == ["read"]
    full = application.refresh(narrowed["refresh_token"]).json()
    assert full["scope"] == "read write"


def test_staff_cannot_consent_to_more_than_is_asked(application: Application) -> None:
    page = application.consent_page(scope="read")
    assert application.decide(page, scopes=["read", "forget"]).status_code == 422
    assert application.decide(page, scopes=["read", "audit"]).status_code == 422
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8001", "localhost"])
def test_a_token_for_another_address_is_not_valid(host: str, application: Application) -> None:
    tokens = application.connected()
    assert application.status_with(tokens["access_token"]) == 200
    assert application.status_with(tokens["access_token"], host="LOCALHOST:8000") == 200
    assert application.status_with(tokens["access_token"], host=host) == 401


def test_a_token_for_mcp_is_not_valid_at_the_api_or_where_oauth_is_off(
    application: Application, settings: Any
) -> None:
    tokens = application.connected()
    for path in ("/api/v1/memories/", "/api/v1/memories/recall/", "/v1/chat/completions"):
        assert application.status_with(tokens["access_token"], path) == 401
    settings.MCP_OAUTH = False
    assert application.status_with(tokens["access_token"]) == 401
    told = application.http.post("/mcp/", {}, content_type="application/json")
    assert told["WWW-Authenticate"] == "Bearer"
    for path in ("/oauth/authorize", "/.well-known/oauth-protected-resource/mcp"):
        assert application.http.get(path).status_code == 404
    assert application.refresh(tokens["refresh_token"]).status_code == 404


def test_a_static_token_goes_on_working_at_both(application: Application) -> None:
    static = token_create(name="static", scopes=["read"], actor=COMMAND_LINE).secret
    assert application.status_with(static) == 200
    assert application.status_with(static, host="127.0.0.1:8000") == 200


def test_an_application_of_one_chat_sees_no_other(application: Application) -> None:
    boss = Rpc(token_create(name="all", scopes=["read", "write"], actor=COMMAND_LINE).secret)
    fact = {"content": "The gate code is zebra17zebra", "whatsapp_chat": OTHER_CLIENT}
    boss.told("remember", fact)
    tokens = application.connected({"every_chat": "", "chats": CLIENT})
    rpc = Rpc(tokens["access_token"])
    rpc.headers["Host"] = "localhost:8000"
    asked = {"query": "What is the gate code?", "min_similarity": 0}
    assert rpc.told("recall", asked)["results"] == []
    assert rpc.call("recall", {**asked, "whatsapp_chat": OTHER_CLIENT})["isError"] is True


def test_a_call_beyond_the_scopes_is_403_and_names_those_that_it_needs(
    application: Application,
) -> None:
    tokens = application.connected({"scopes": ["read"]})
    rpc = Rpc(tokens["access_token"])
    rpc.headers["Host"] = "localhost:8000"
    params = {"name": "forget", "arguments": {"memory_id": "x"}}
    answer = rpc.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    assert answer.status_code == 403
    told = answer["WWW-Authenticate"]
    assert 'error="insufficient_scope"' in told
    assert 'scope="forget read"' in told
    assert "resource_metadata=" in told
    assert rpc.told("recall", {"query": "anything"})["results"] == []


@pytest.mark.parametrize(
    ("address", "registered"),
    [
        ("https://assistant.example/callback", True),
        ("http://127.0.0.1:4321/callback", True),
        ("http://[::1]:4321/callback", True),
        ("http://localhost/callback", True),
        ("cursor://anysphere.cursor/callback", True),
        ("http://assistant.example/callback", False),
        ("http://127.0.0.1.attacker.example/callback", False),
        ("http://127.0.0.1@attacker.example/callback", False),
        ("https://user:word@assistant.example/callback", False),
        ("https://assistant.example/callback#fragment", False),
        ("javascript:alert(1)", False),
        ("JavaScript://%0aalert(1)", False),
        ("data:text/html,hello", False),
        ("file:///etc/passwd", False),
        (f"https://assistant.example/{'x' * 3000}", False),
        ("no address", False),
    ],
)
def test_only_safe_redirects_are_registered(
    address: str, registered: bool, application: Application
) -> None:
    answer = application.register({"redirect_uris": [REDIRECT, address]})
    assert answer.status_code == (201 if registered else 400), answer.content
    if not registered:
        assert answer.json()["error"] in ("invalid_redirect_uri", "invalid_client_metadata")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"redirect_uris": []}',
        b'{"redirect_uris": ["https://a.example/"], "client_name": "a\\u0000"}',
        b'{"redirect_uris": ["https://a.example/"], "client_name": "\\ud800"}',
        b'{"redirect_uris": ["https://a.example/"], "response_types": ["token"]}',
        b'{"redirect_uris": ["https://a.example/"], "client_name": "' + b"x" * 70_000 + b'"}',
    ],
)
def test_metadata_that_makes_no_sense_is_refused(body: bytes, application: Application) -> None:
    answer = application.register(body)
    assert answer.status_code in (400, 413), answer.content
    assert answer.json()["error"] == "invalid_client_metadata"


@pytest.mark.parametrize(
    "parameters",
    [
        {"redirect_uri": ATTACKER},
        {"redirect_uri": f"{REDIRECT}/more"},
        {"redirect_uri": f"{REDIRECT}?more=1"},
        {"redirect_uri": "http://127.0.0.1.attacker.example:1234/callback"},
        {"redirect_uri": "http://user@127.0.0.1:1234/callback"},
        {"redirect_uri": [REDIRECT, ATTACKER]},
        {"redirect_uri": "javascript:alert(1)"},
        {"client_id": "nobody"},
        {"client_id": "\0"},
        {"client_id": None},
    ],
)
def test_nobody_is_redirected_to_where_no_application_is(
    parameters: dict[str, Any], application: Application
) -> None:
    answer = application.authorize(**parameters)
    assert answer.status_code == 400
    assert answer["Content-Type"].startswith("text/html")
    assert not answer.has_header("Location")


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "read audit"}, "invalid_scope"),
        ({"scope": "everything"}, "invalid_scope"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"resource": "http://["}, "invalid_target"),
        ({"state": secrets.token_hex(3000)}, "invalid_request"),
    ],
)
def test_a_wrong_request_is_told_to_the_application(
    parameters: dict[str, Any], error: str, application: Application
) -> None:
    answer = application.authorize(**parameters)
    assert answer.status_code == 302, answer.content
    assert answer["Location"].startswith(REDIRECT)
    told = parameters_of(answer["Location"])
    assert (told["error"], told["iss"]) == (error, SERVER)


def test_a_program_may_look_where_a_person_would_be_led(application: Application) -> None:
    query = parameters_of(f"?{application.authorize().wsgi_request.META['QUERY_STRING']}")
    answer = application.http.head("/oauth/authorize", query)
    assert answer.status_code == 302
    assert "/admin/api/apitoken/consent/" in answer["Location"]


@pytest.mark.parametrize("empty", ["scope", "resource", "state"])
def test_an_empty_parameter_counts_as_none(empty: str, application: Application) -> None:
    page = application.consent_page(**{empty: ""})
    assert parameters_of(application.decide(page)["Location"])["code"]


@pytest.mark.parametrize(
    "resource", [f"{SERVER}/mcp", f"{SERVER}/mcp/", "HTTP://Localhost:8000/mcp"]
)
def test_the_address_may_be_spelled_as_people_type_it(
    resource: str, application: Application
) -> None:
    assert application.connected(resource=resource)["access_token"]


def test_the_port_of_a_loopback_redirect_is_free(application: Application) -> None:
    elsewhere = "http://127.0.0.1:55555/callback"
    code = application.code(redirect_uri=elsewhere)
    assert application.redeem(code, redirect_uri=elsewhere).status_code == 200


def test_only_staff_who_may_make_tokens_consent(application: Application) -> None:
    page = application.consent_page()
    stranger = Application(Client())
    login = stranger.staff.get(page)
    assert login.status_code == 302
    assert login["Location"].startswith("/admin/login/?next=/admin/api/apitoken/consent/")
    for client in (staff_with("api.view_apitoken"), Client()):
        assert Application(client).decide(page).status_code in (302, 403)
    assert not ApiToken.objects.exists()


def test_the_consent_page_cannot_be_framed_forged_or_changed(application: Application) -> None:
    page = application.consent_page()
    shown = application.staff.get(page)
    assert shown.status_code == 200
    assert b"Assistant" in shown.content
    assert b"127.0.0.1:1234" in shown.content
    assert shown["X-Frame-Options"] == "DENY"
    policy = shown["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http:" in policy
    assert "no-store" in shown["Cache-Control"]
    forger = Client(enforce_csrf_checks=True)
    forger.force_login(User.objects.get(username="boss"))
    assert Application(forger).decide(page).status_code == 403
    for wrong in (f"{page}x", page.replace("request=", "request=x"), page.partition("?")[0]):
        assert application.decide(wrong).status_code == 400
    assert not ApiToken.objects.exists()


def test_an_application_can_put_no_markup_on_the_consent_page() -> None:
    application = Application(client_name="<script>alert(1)</script>")
    shown = application.staff.get(application.consent_page()).content
    assert b"<script>alert" not in shown
    assert b"&lt;script&gt;" in shown


def test_a_consent_without_chats_or_scopes_is_asked_again(application: Application) -> None:
    page = application.consent_page()
    wrong: list[dict[str, Any]] = [{"every_chat": ""}, {"scopes": []}, {"chats": "nobody"}]
    for form in wrong:
        assert application.decide(page, **form).status_code == 422
    assert not ApiToken.objects.exists()


# The end of grants.


@pytest.mark.parametrize("name", ["access_token", "refresh_token"])
def test_an_application_revokes_its_grant_by_either_token(
    name: str, application: Application
) -> None:
    tokens = application.connected()
    form = {"client_id": application.client_id, "token": tokens[name]}
    assert application.http.post("/oauth/revoke", form).status_code == 200
    assert application.status_with(tokens["access_token"]) == 401
    assert error_of(application.refresh(tokens["refresh_token"])) == "invalid_grant"
    assert application.http.post("/oauth/revoke", form).status_code == 200


def test_staff_see_grants_and_revoke_them(application: Application) -> None:
    tokens = application.connected()
    key = ApiToken.objects.get().pk
    listed = application.staff.get("/admin/api/apitoken/").content.decode()
    assert "My assistant" in listed
    assert "Assistant" in listed
    chosen = {"action": "revoke_selected", "_selected_action": key}
    application.staff.post("/admin/api/apitoken/", chosen)
    assert application.status_with(tokens["access_token"]) == 401
    assert error_of(application.refresh(tokens["refresh_token"])) == "invalid_grant"


def test_codes_access_tokens_and_grants_expire_and_are_cleaned(application: Application) -> None:
    code = application.code()
    OAuthGrant.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
    assert error_of(application.redeem(code)) == "invalid_grant"
    tokens = application.connected()
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert application.status_with(tokens["access_token"]) == 401
    listed = application.staff.get("/admin/api/apitoken/?grant__isempty=0").content.decode()
    assert "valid" in listed
    tokens = application.refresh(tokens["refresh_token"]).json()
    assert application.status_with(tokens["access_token"]) == 200
    assert tidy()["grants"] == 0
    OAuthGrant.objects.update(ends_at=timezone.now() - timedelta(days=31))
    OAuthClient.objects.update(created_at=timezone.now() - timedelta(days=2))
    static = token_create(name="static", actor=COMMAND_LINE).token
    token_revoke(token_id=static.pk, actor=COMMAND_LINE)
    ApiToken.objects.update(revoked_at=timezone.now() - timedelta(days=400))
    tidy()
    assert not OAuthClient.objects.exists()
    assert ApiToken.objects.get() == static


def test_registrations_are_limited_in_rate_and_number(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.connected()
    monkeypatch.setattr(provider, "MAX_UNUSED_CLIENTS", 2)
    newest = [Application().client_id for _ in range(4)][-2:]
    kept = set(OAuthClient.objects.values_list("pk", flat=True))
    assert kept == {application.client_id, *newest}
    monkeypatch.setattr(oauth_endpoints, "REGISTRATIONS_A_MINUTE", 0)
    refused = application.register({"redirect_uris": [REDIRECT]})
    assert (refused.status_code, refused.json()["error"]) == (429, "temporarily_unavailable")
    assert int(refused["Retry-After"]) > 0


def test_an_application_that_was_dropped_is_told_so_to_staff(application: Application) -> None:
    page = application.consent_page()
    OAuthClient.objects.all().delete()
    answer = application.decide(page)
    assert answer.status_code == 422
    assert "registered any more" in answer.content.decode()
