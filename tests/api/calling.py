"""Calls the API's views as HTTP clients do."""

from __future__ import annotations

import json
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.rest_kit.models import SCOPES
from memoryproject.foundation.rest_kit.tokens import token_create

JSON = "application/json"
ROOT = "/api/v1/"
SHAPE = {"type", "errors"}
ERROR = {"code", "detail", "attr"}


class Api:
    """Calls with a token; None: without one. Paths are those below /api/v1/."""

    def __init__(self, token: str | None, client: Client | None = None) -> None:
        self.client = client or Client(raise_request_exception=False)
        self.headers = {} if token is None else {"Authorization": f"Token {token}"}

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """A body that isn't bytes is sent as JSON; headers by name, with _ for -."""
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(
            method,
            path if path.startswith("/") else ROOT + path,
            raw,
            content_type=named.pop("Content-Type", JSON),
            headers={**self.headers, **named},
        )

    def get(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("POST", path, {} if body is None else body, **headers)

    def upload(self, content: bytes, name: str, fields: Any = None, **headers: str) -> Any:
        """Send a file as a form with these other fields."""
        form = form_of(content, name, fields)
        return self.call("POST", "files/", form, Content_Type=MULTIPART_CONTENT, **headers)

    def delete(self, path: str, **headers: str) -> Any:
        return self.call("DELETE", path, **headers)

    def walk(self, path: str) -> list[Any]:
        """All results, page by page."""
        found: list[Any] = []
        following: str | None = path
        while following:
            answer = self.get(following.removeprefix("http://testserver"))
            assert answer.status_code == 200, answer.content
            found += answer.json()["results"]
            following = answer.json()["next"]
        return found


def make_token(*scopes: str, **options: Any) -> str:
    """Return the secret of a new token, by default one that may do everything."""
    made = token_create(scopes=scopes or SCOPES, actor=COMMAND_LINE, **{"name": "tests", **options})
    return made.secret


def api_with(*scopes: str, **options: Any) -> Api:
    """Calls with a new token, by default one that may do everything."""
    return Api(make_token(*scopes, **options))


def form_of(content: bytes, name: str, fields: Any = None) -> bytes:
    """A form with a file, by MULTIPART_CONTENT."""
    file = SimpleUploadedFile(name, content)
    return encode_multipart(BOUNDARY, {"file": file, **(fields or {})})


def error_of(answer: Any, status: int) -> dict[str, Any]:
    """The first error of a refusal, which has this status and the one shape."""
    assert answer.status_code == status, (answer.status_code, answer.content[:500])
    document = answer.json()
    assert set(document) == SHAPE, document
    assert document["type"] in {"validation_error", "client_error", "server_error"}
    assert document["errors"], document
    for error in document["errors"]:
        assert set(error) == ERROR, error
        assert error["code"], error
        assert error["detail"], error
    first: dict[str, Any] = document["errors"][0]
    return first
