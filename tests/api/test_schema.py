"""The schema, and the page that shows it."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import pytest
import yaml
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.test import Client

from tests.api.routes import SCOPE_OF
from tests.api.test_scopes import ROUTES

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def schema() -> Any:
    out = StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=out)
    return yaml.safe_load(out.getvalue())


def operations(schema: Any) -> list[tuple[str, str, Any]]:
    return [
        (path, method, operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_schema_is_valid_and_has_every_operation(schema: Any) -> None:
    expected = {
        (re.sub(r"<\w+:(\w+)>", r"{\1}", ROUTES[name][0]), method.lower())
        for name, methods in SCOPE_OF.items()
        for method in methods
    }
    assert {(path, method) for path, method, _ in operations(schema)} == expected


def test_every_operation_has_a_summary_and_examples_of_what_it_takes_and_gives(
    schema: Any,
) -> None:
    for path, method, operation in operations(schema):
        where = f"{method} {path}"
        assert operation.get("summary"), where
        assert operation.get("description"), where
        body = operation.get("requestBody")
        for kind in (body or {}).get("content", {}).values():
            assert kind.get("examples"), f"{where}: no example of a body"
        good = [text for code, text in operation["responses"].items() if code.startswith("2")]
        assert any(
            kind.get("examples") for answer in good for kind in answer.get("content", {}).values()
        ), f"{where}: no example of an answer"
        assert {"400", "401", "403", "404", "429"} <= set(operation["responses"]), where


def test_every_creating_post_tells_of_its_key(schema: Any) -> None:
    for path, method, operation in operations(schema):
        names = [parameter["name"] for parameter in operation.get("parameters", [])]
        if method == "post" and not path.endswith("/context/"):
            assert "Idempotency-Key" in names or "recall" in path or "validate" in path, path


def test_the_page_needs_nothing_from_elsewhere(client: Client) -> None:
    page = client.get("/api/docs/")
    assert page.status_code == 200
    text = page.content.decode()
    addresses = re.findall(r"""(?:src|href)=["']([^"']+)["']""", text)
    assert addresses
    for address in addresses:
        assert address.startswith("/static/"), address
        assert finders.find(address.removeprefix("/static/")), address
    assert "://" not in re.sub(r"https?://testserver", "", text)


def test_the_schema_is_served_without_a_token(client: Client) -> None:
    answer = client.get("/api/schema/")
    assert answer.status_code == 200
    assert yaml.safe_load(answer.content)["openapi"].startswith("3.")
