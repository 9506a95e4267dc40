"""What a page may load: files of this server, which aren't many bytes as the front door sends
them; and nothing that stands in a page is run."""

from __future__ import annotations

import gzip
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from tests.staff.furnish import furnish, rows
from tests.staff.test_every_role import role_client, tries
from tests.world import new_world

pytestmark = pytest.mark.django_db

MAX_SCRIPT_BYTES = 100_000
STATIC = "/static/"


class Finder(HTMLParser):
    """Collects what would be run from within a page, and what is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "script":
            self.scripts.append(given.get("src") or "")
            if not self.scripts[-1].startswith((STATIC, "/admin/jsi18n/", "/api/docs/")):
                self.wrong.append(f"a script of its own: {given}")
        if tag == "link" and not (given.get("href") or "").startswith(("/static/", "data:")):
            self.wrong.append(f"loaded from elsewhere: {given}")
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.wrong.append(f"run from an attribute: {tag} {name}={value}")


def directives(header: str) -> dict[str, set[str]]:
    parts = [part.split() for part in header.split(";")]
    return {part[0]: set(part[1:]) for part in parts if part}


@pytest.mark.parametrize("address", ["/", "/admin/login/", "/api/docs/", "/api/v1/", "/healthz"])
def test_scripts_come_from_this_server_alone(client: Client, address: str) -> None:
    policy = directives(client.get(address)["Content-Security-Policy"])
    assert policy["script-src"] == {"'self'"}
    assert policy["default-src"] == {"'self'"}
    assert policy["object-src"] == policy["base-uri"] == policy["frame-ancestors"] == {"'none'"}
    assert policy["form-action"] == {"'self'"}


@pytest.fixture(scope="module")
def superuser(module_rows: None) -> Client:
    furnish(new_world())
    client, _ = role_client("S")
    return client


@pytest.fixture(scope="module")
def pages(superuser: Client) -> dict[str, Finder]:
    """What is found in every page of the admin, by its address."""
    found = {}
    for address in dict.fromkeys(one.address for one in tries(rows()) if one.method == "GET"):
        answer: Any = superuser.get(address)
        if answer["Content-Type"].startswith("text/html"):
            found[address] = Finder()
            # What streams is sent in pieces.
            found[address].feed(b"".join(answer).decode())
    return found


@pytest.mark.slow
def test_no_page_has_a_script_of_its_own(pages: dict[str, Finder]) -> None:
    wrong = {address: page.wrong for address, page in pages.items() if page.wrong}
    assert wrong == {}
    assert sum(bool(page.scripts) for page in pages.values()) > 80


@pytest.mark.slow
def test_no_page_loads_more_than_its_budget_of_scripts(
    superuser: Client, pages: dict[str, Finder]
) -> None:
    @cache
    def bytes_of(address: str) -> int:
        """The length of a static file as gzip; scripts that views make are not compressed."""
        if not address.startswith(STATIC):
            return len(superuser.get(address).content)
        file = finders.find(address.split("?")[0].removeprefix(STATIC))
        assert isinstance(file, str), address
        return len(gzip.compress(Path(file).read_bytes(), 6))

    loaded = {address: sum(map(bytes_of, page.scripts)) for address, page in pages.items()}
    assert sum(map(bool, loaded.values())) > 80
    too_heavy = {each: size for each, size in loaded.items() if size > MAX_SCRIPT_BYTES}
    assert too_heavy == {}
