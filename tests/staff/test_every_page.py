"""Every page that staff with all rights may open: nothing that stands in it is run, it loads files
of this server alone, which aren't many bytes as the front door sends them, and it marks the entry
of the menu that it belongs to."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import reverse

from memoryproject.staff_site.navigation import MENU, SETTINGS
from tests.staff.expected import LISTS
from tests.staff.furnish import furnish_hostile, rows
from tests.staff.test_every_role import role_client, tries
from tests.world import new_world

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

MAX_SCRIPT_BYTES = 100_000
STATIC = "/static/"
# Of the pages that aren't named after a list: the page of their entry. None has none.
ENTRIES = {
    "index": "index",
    "costs": "index",
    "global_search": None,
    "moving": None,
    "app_list": None,
    "password_change": "password_change",
    "password_change_done": "password_change",
    "two_factor": "two_factor",
    "broadcasts": "broadcasts",
    "broadcast": "broadcasts",
    "notifications": "notifications",
    "contact": "contacts",
    "contacts": "contacts",
    "operations": "operations",
    "setup": "operations",
    **dict.fromkeys(
        [f"django_q_{each}" for each in ("schedule", "success", "failure", "ormq")], "operations"
    ),
    "sessions_app_turn_unknown": "sessions_app_turn_unknown",
    "sessions_app_turn_outcomes": "sessions_app_turn_outcomes",
    "memories_app_memory_waiting": "memories_app_memory_waiting",
    "memories_app_memory_promises": "memories_app_memory_promises",
    "memories_app_memory_table": "memories_app_memory_table",
}
MARKED = re.compile(r'<a href="([^"]*)" aria-current="page"')


@dataclass(frozen=True)
class Opened:
    """A page, by the name of its address."""

    name: str
    address: str
    status: int
    html: str


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
        if given.get("rel") == "manifest":
            # Of the app that the pages can be installed as.
            return
        if tag == "link" and not (given.get("href") or "").startswith(("/static/", "data:")):
            self.wrong.append(f"loaded from elsewhere: {given}")
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.wrong.append(f"run from an attribute: {tag} {name}={value}")


@pytest.fixture(scope="module")
def furnished(module_rows: None) -> None:
    furnish_hostile(new_world())


@pytest.fixture(scope="module")
def superuser(furnished: None) -> Client:
    client, _ = role_client("S")
    return client


def opened_by(client: Client, what: str = "") -> list[Opened]:
    found = []
    known: set[str] = set()
    for one in tries(rows()):
        if one.method != "GET" or one.address in known or not one.name.endswith(what):
            continue
        known.add(one.address)
        answer: Any = client.get(one.address)
        if answer["Content-Type"].startswith("text/html"):
            # What streams is sent in pieces.
            assert "no-store" in answer["Cache-Control"], one.name
            html = b"".join(answer).decode()
            found.append(Opened(one.name, one.address, answer.status_code, html))
    return found


@pytest.fixture(scope="module")
def pages(superuser: Client) -> list[Opened]:
    return opened_by(superuser)


@pytest.fixture(scope="module")
def loaded(pages: list[Opened]) -> dict[str, Finder]:
    """What is found in every page, by its address."""
    found = {page.address: Finder() for page in pages}
    for page in pages:
        found[page.address].feed(page.html)
    return found


def test_no_page_has_a_script_of_its_own(loaded: dict[str, Finder]) -> None:
    wrong = {address: page.wrong for address, page in loaded.items() if page.wrong}
    assert wrong == {}
    assert sum(bool(page.scripts) for page in loaded.values()) > 80


def test_no_page_exceeds_its_script_budget(superuser: Client, loaded: dict[str, Finder]) -> None:
    @cache
    def bytes_of(address: str) -> int:
        """The length of a static file as gzip; scripts that views make are not compressed."""
        if not address.startswith(STATIC):
            return len(superuser.get(address).content)
        file = finders.find(address.split("?")[0].removeprefix(STATIC))
        assert isinstance(file, str), address
        return len(gzip.compress(Path(file).read_bytes(), 6))

    sizes = {address: sum(map(bytes_of, page.scripts)) for address, page in loaded.items()}
    assert sum(map(bool, sizes.values())) > 80
    too_heavy = {each: size for each, size in sizes.items() if size > MAX_SCRIPT_BYTES}
    assert too_heavy == {}


def entry_of(name: str, *, operates: bool) -> str | None:
    """Return the address of the page's entry: the longest name that the page's begins with.

    Raw tables belong to Operations.
    """
    in_menu = {entry.name for _, entries in (*MENU, *SETTINGS) for entry in entries}
    raw = "operations" if operates else ""
    lists = {
        label.replace(".", "_"): f"{label.replace('.', '_')}_changelist"
        if label in in_menu
        else raw
        for label in LISTS
    }
    known = {**lists, **ENTRIES}
    begin = max((each for each in known if f"{name}_".startswith(f"{each}_")), key=len)
    entry = known[begin]
    return reverse(f"admin:{entry}") if entry else None


def wrongly_marked(opened: Iterable[Opened], least: int, *, operates: bool) -> list[str]:
    """The pages that mark another entry than theirs, or several. Parts of pages have no menu."""
    whole = [page for page in opened if page.status == 200 and 'id="nav-sidebar"' in page.html]
    assert len(whole) > least
    wrong = []
    for page in whole:
        marked = MARKED.findall(page.html.split("</nav>")[0])
        expected = entry_of(page.name, operates=operates)
        if marked != ([expected] if expected else []):
            wrong.append(f"{page.name}: {marked} instead of {expected}")
    return wrong


def test_every_page_marks_its_entry(pages: list[Opened]) -> None:
    assert wrongly_marked(pages, 100, operates=True) == []


@pytest.fixture
def reader() -> Client:
    """Who may read and change everything, but doesn't operate the server."""
    user = User.objects.create_user("reader", password="a-sample-2026", is_staff=True)
    user.user_permissions.set(Permission.objects.exclude(codename="operate_server"))
    client = Client()
    client.force_login(user)
    return client


def test_who_does_not_operate_finds_raw_tables_by_links(furnished: None, reader: Client) -> None:
    assert wrongly_marked(opened_by(reader, "changelist"), 20, operates=False) == []
