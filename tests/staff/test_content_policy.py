"""What a page may load: files of this server, and nothing that stands in a page is run."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from tests.staff.furnish import furnish, rows
from tests.staff.test_every_role import tries
from tests.world import World

pytestmark = pytest.mark.django_db


class Finder(HTMLParser):
    """Collects what would be run from within a page, and what is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "script":
            self.scripts += 1
            if not (given.get("src") or "").startswith(
                ("/static/", "/admin/jsi18n/", "/api/docs/")
            ):
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


@pytest.mark.slow
def test_no_page_has_a_script_of_its_own(world: World) -> None:
    furnish(world)
    client = Client()
    client.force_login(get_user_model()._default_manager.create_superuser("root"))
    looked_at = 0
    for one in tries(rows()):
        if one.method != "GET":
            continue
        answer: Any = client.get(one.address)
        if not answer["Content-Type"].startswith("text/html"):
            continue
        finder = Finder()
        # What streams is sent in pieces.
        finder.feed(b"".join(answer).decode())
        assert finder.wrong == [], one.address
        looked_at += finder.scripts > 0
    assert looked_at > 80
