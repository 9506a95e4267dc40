"""One version: in the code, the package, the changes, the commands, the API and staff's pages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from django.test import Client

from memoryproject import __version__
from tests.docs.sources import PROJECT, read

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_the_package_and_the_changes_have_it() -> None:
    project: dict[str, Any] = tomllib.loads(read("pyproject.toml"))["project"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)
    assert project["version"] == __version__
    newest = re.search(
        r"^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)$", read("CHANGELOG.md"), re.MULTILINE
    )
    assert newest
    assert newest[1] == __version__


def test_the_clients_and_the_documents_have_it() -> None:
    """They are released together."""
    client = tomllib.loads(read("clients/python/pyproject.toml"))["project"]
    packages = [json.loads(read(f"clients/{name}/package.json")) for name in ("typescript", "n8n")]
    assert {client["version"], *(each["version"] for each in packages)} == {__version__}
    named = re.findall(r"-(\d+\.\d+\.\d+)[-.](?:tgz|py3)", read("README.md") + read("docs/sdk.md"))
    assert len(named) >= 3
    assert set(named) == {__version__}


@pytest.mark.parametrize("word", ["version", "--version"])
def test_a_command_prints_it(word: str) -> None:
    printed = subprocess.run(
        [sys.executable, "manage.py", word], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert (printed.stdout, printed.stderr) == (f"{__version__}\n", "")


def test_the_schema_has_it(client: Client) -> None:
    assert client.get("/api/schema/", {"format": "json"}).json()["info"]["version"] == __version__


@pytest.mark.django_db
def test_staff_and_callers_of_the_api_see_it(admin_client: Client) -> None:
    assert admin_client.get("/api/v1/").json()["version"] == __version__
    assert f"WhatsApp memory {__version__}</footer>" in admin_client.get("/admin/").text
