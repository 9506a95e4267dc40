"""An application that connects itself by OAuth, with a person at the browser."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.contrib.auth.models import User
from django.test import Client

HOST = "localhost:8000"
SERVER = f"http://{HOST}"
VERIFIER = "verifier-" * 6
REDIRECT = "http://127.0.0.1:1234/callback"


def challenge_of(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class Application:
    """``staff``: the browser in which somebody is logged in who may consent."""

    def __init__(self, staff: Client | None = None, **metadata: Any) -> None:
        self.http = Client(raise_request_exception=False, headers={"Host": HOST})
        if staff is None:
            boss, _ = User.objects.get_or_create(username="boss", is_staff=True, is_superuser=True)
            staff = Client()
            staff.force_login(boss)
        self.staff = staff
        given = {"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none", **metadata}
        self.registration = self.register(given)
        self.client_id = self.registration.json().get("client_id", "")

    def register(self, metadata: Any) -> Any:
        return self.http.post("/oauth/register", metadata, content_type="application/json")

    def authorize(self, **parameters: Any) -> Any:
        """What the browser is told; None leaves a parameter out."""
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "state": "of the application",
            **parameters,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        return self.http.get("/oauth/authorize", given)

    def consent_page(self, **parameters: Any) -> str:
        answer = self.authorize(**parameters)
        assert answer.status_code == 302, answer.content
        address = urlsplit(answer["Location"])
        assert address.path == "/admin/api/apitoken/consent/"
        return f"{address.path}?{address.query}"

    def decide(self, page: str, **form: Any) -> Any:
        """Send the form of the consent page."""
        scopes = ["read", "write", "forget"]
        given = {"name": "My assistant", "scopes": scopes, "every_chat": "on", **form}
        return self.staff.post(page, given, headers={"Host": HOST})

    def code(self, form: Any = None, **parameters: Any) -> str:
        """A code, as the application gets it."""
        answer = self.decide(self.consent_page(**parameters), **(form or {}))
        assert answer.status_code == 302, answer.content
        told = parameters_of(answer["Location"])
        assert (told["iss"], told.get("state")) == (SERVER, "of the application")
        return told["code"]

    def token(self, **form: Any) -> Any:
        return self.http.post("/oauth/token", {"client_id": self.client_id, **form})

    def redeem(self, code: str, **form: Any) -> Any:
        given = {"code": code, "redirect_uri": REDIRECT, "code_verifier": VERIFIER, **form}
        return self.token(grant_type="authorization_code", **given)

    def refresh(self, token: str, **form: Any) -> Any:
        return self.token(grant_type="refresh_token", refresh_token=token, **form)

    def connected(self, form: Any = None, **parameters: Any) -> dict[str, Any]:
        """The tokens after the whole flow."""
        answer = self.redeem(self.code(form, **parameters))
        assert answer.status_code == 200, answer.content
        tokens: dict[str, Any] = answer.json()
        return tokens

    def status_with(self, access_token: str, path: str = "/mcp/", host: str = HOST) -> int:
        """What a call with a token gets."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        answer = self.http.post(
            path,
            body,
            content_type="application/json",
            headers={
                "Authorization": f"Bearer {access_token}",
                "Host": host,
                "Accept": "application/json, text/event-stream",
            },
        )
        status: int = answer.status_code
        return status


def parameters_of(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(address).query))
