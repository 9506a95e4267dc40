"""Every role tries every address and every action of the admin, by GET and by direct POST, and no
page offers it a link or a form that it may not use. What is expected is in tests/staff/expected.py,
which says how to add to it.

Of every page that a superuser opens, with texts in it that would like to be more than text: nothing
that stands in it is run, it loads files of this server alone, which aren't many bytes as the front
door sends them, and it marks the entry of the menu that it belongs to.
"""

from __future__ import annotations

import gzip
import logging
import re
from collections.abc import Iterable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.contrib.staticfiles import finders
from django.test import Client, RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from memoryproject.staff_site.navigation import MENU, SETTINGS
from sessions_app.models import StoredSetting
from sessions_app.stored_settings import stored_settings_look
from tests.staff.expected import BY_WHAT_IS_ASKED, LISTS, OPEN, PAGES
from tests.staff.furnish import furnish_hostile, rows
from tests.staff.roles import (
    CHAIN,
    ROLES,
    Opened,
    Try,
    Visitor,
    is_known_by_get,
    is_told_by_others,
    made,
    role_client,
    tries,
)
from tests.world import new_world

pytestmark = pytest.mark.django_db

# These are refused most, which costs little; the others open every page that there is.
QUICK = "NPV"
LETTERS = [
    letter if letter in QUICK else pytest.param(letter, marks=pytest.mark.slow) for letter in ROLES
]
GENERIC = ("changelist", "add", "change", "delete", "history")
# Beside the chain.
GROWING = (("P", "U"), ("U", "A"), ("S", "A"))
Roles = dict[str, tuple[Client, User | None]]


@pytest.fixture(autouse=True)
def settings_as_before(db: None) -> Iterator[None]:
    """What the pages of the set-up stored isn't in use in the tests that follow."""
    yield
    StoredSetting.objects.all().delete()
    stored_settings_look(at_once=True)


def of_admin() -> Iterator[tuple[str, str]]:
    """The name and the pattern of every address below /admin/."""

    def walk(patterns: list[Any], prefix: str) -> Iterator[tuple[str, str]]:
        for each in patterns:
            whole = prefix + str(each.pattern)
            if isinstance(each, URLResolver):
                yield from walk(each.url_patterns, whole)
            elif isinstance(each, URLPattern) and whole.startswith("admin/"):
                yield each.name or "", whole

    return walk(get_resolver().url_patterns, "")


def generic_names() -> set[str]:
    labels = [model._meta.label_lower.replace(".", "_") for model in admin.site._registry]
    return {f"{label}_{what}" for label in labels for what in GENERIC}


def test_every_address_is_in_the_table_and_no_other() -> None:
    # The addresses first: the lists are registered as these are loaded.
    there = {name for name, _ in of_admin()}
    known = generic_names() | set(PAGES) | OPEN | BY_WHAT_IS_ASKED
    assert there - known - {""} == set(), "say in tests/staff/expected.py who may"
    assert set(PAGES) - there == set()
    without_name = [pattern for name, pattern in of_admin() if not name]
    assert all(pattern.endswith(("<path:object_id>/", "(?P<url>.*)$")) for pattern in without_name)


def test_every_list_and_action_is_in_the_table_and_no_other() -> None:
    registry = {model._meta.label_lower: each for model, each in admin.site._registry.items()}
    assert set(registry) == set(LISTS), "say in tests/staff/expected.py who may"
    request = RequestFactory().get("/admin/")
    request.user = User(is_superuser=True, is_active=True, is_staff=True)
    for label, model_admin in registry.items():
        actions = set(model_admin.get_actions(request)) - {"delete_selected"}
        assert actions == set(LISTS[label].actions), label


def test_who_has_more_rights_may_do_more() -> None:
    """By this and by the groups' rights, one role's try tells of others': see is_told_by_others."""
    every = [may for page in PAGES.values() for may in (page.get, page.post) if may is not None]
    for each in LISTS.values():
        every += [each.view, each.add, each.change, each.delete, *each.actions.values()]
    for may in every:
        for less, more in (*zip(CHAIN, CHAIN[1:], strict=False), *GROWING):
            assert less not in may or more in may, may


@pytest.fixture(autouse=True)
def no_log_of_refusals(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Each would be written with its traceback, which takes longer than to refuse."""
    with caplog.at_level(logging.CRITICAL, logger="django.request"):
        yield


@pytest.fixture(scope="module")
def roles(module_rows: None) -> Roles:
    """Somebody of each role, in a world with a row of everything."""
    furnish_hostile(new_world())
    return {letter: role_client(letter) for letter in ROLES}


def visit(roles: Roles, letter: str) -> tuple[Visitor, list[str]]:
    """Who has tried all that has to be tried, and what was wrong."""
    visitor = Visitor(letter, roles[letter][0])
    tried = [
        one
        for one in tries(rows())
        if not is_known_by_get(letter, one) and not is_told_by_others(letter, one)
    ]
    return visitor, [found for one in tried if (found := visitor.judged(one))]


@pytest.fixture(scope="module")
def superuser(roles: Roles) -> tuple[Visitor, list[str]]:
    return visit(roles, "S")


@pytest.mark.parametrize("letter", LETTERS)
def test_a_role_tries_every_address_and_is_offered_no_other(
    request: pytest.FixtureRequest, roles: Roles, letter: str
) -> None:
    is_super = letter == "S"
    visitor, wrong = request.getfixturevalue("superuser") if is_super else visit(roles, letter)
    wrong = [*wrong, *sorted(visitor.offered_in_vain())]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("letter", ROLES)
def test_a_role_tries_every_action(roles: Roles, letter: str) -> None:
    client, user = roles[letter]
    keys = rows()
    request = RequestFactory().get("/admin/")
    wrong = []
    for model, model_admin in admin.site._registry.items():
        label = model._meta.label_lower
        expected = {**LISTS[label].actions, "delete_selected": LISTS[label].delete}
        request.user = user  # type: ignore[assignment]
        opens = user is not None and model_admin.has_view_or_change_permission(request)
        offered = set(model_admin.get_actions(request)) if opens else set()
        address = reverse(f"admin:{label.replace('.', '_')}_changelist")
        for name, may in expected.items():
            is_left_out = name == "delete_selected" and name not in offered
            if (name in offered) != (letter in may) and not is_left_out:
                wrong.append(f"{label}.{name}: {'' if name in offered else 'not '}offered")
            data = {"action": name, "_selected_action": [keys[label]], "post": "yes"}
            one = Try("POST", name, address, may, data)
            if letter not in may and not is_told_by_others(letter, one):
                answer, written = made(client, one)
                if written or answer.status_code >= 500:
                    wrong.append(f"{label}.{name}: {answer.status_code}, wrote to {written}")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("letter", "NP")
def test_a_page_that_asks_by_itself_is_answered_without_a_page(roles: Roles, letter: str) -> None:
    for label in LISTS:
        address = reverse(f"admin:{label.replace('.', '_')}_changelist")
        answer = roles[letter][0].get(address, headers={"X-Requested-With": "live"})
        assert answer.status_code == (401 if letter == "N" else 403)


# What a superuser's pages hold.


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
def loaded(superuser: tuple[Visitor, list[str]]) -> dict[str, Finder]:
    """What is found in every page, by its address."""
    found = {page.address: Finder() for page in superuser[0].pages}
    for page in superuser[0].pages:
        found[page.address].feed(page.html)
    return found


@pytest.mark.slow
def test_no_page_has_a_script_of_its_own(loaded: dict[str, Finder]) -> None:
    wrong = {address: page.wrong for address, page in loaded.items() if page.wrong}
    assert wrong == {}
    assert sum(bool(page.scripts) for page in loaded.values()) > 80


@pytest.mark.slow
def test_no_page_exceeds_its_script_budget(roles: Roles, loaded: dict[str, Finder]) -> None:
    @cache
    def bytes_of(address: str) -> int:
        """The length of a static file as gzip; scripts that views make are not compressed."""
        if not address.startswith(STATIC):
            return len(roles["S"][0].get(address).content)
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
    whole = [page for page in opened if 'id="nav-sidebar"' in page.html]
    assert len(whole) > least
    wrong = []
    for page in whole:
        marked = MARKED.findall(page.html.split("</nav>")[0])
        expected = entry_of(page.name, operates=operates)
        if marked != ([expected] if expected else []):
            wrong.append(f"{page.name}: {marked} instead of {expected}")
    return wrong


@pytest.mark.slow
def test_every_page_marks_its_entry(superuser: tuple[Visitor, list[str]]) -> None:
    assert wrongly_marked(superuser[0].pages, 100, operates=True) == []


@pytest.mark.slow
def test_who_does_not_operate_finds_raw_tables_by_links(roles: Roles) -> None:
    """Though able to read and change everything."""
    user = User.objects.create_user("reader", password="a-sample-2026", is_staff=True)
    user.user_permissions.set(Permission.objects.exclude(codename="operate_server"))
    reader = Visitor("", Client())
    reader.client.force_login(user)
    for one in tries(rows()):
        if one.method == "GET" and one.name.endswith("changelist"):
            reader.look(one)
    assert wrongly_marked(reader.pages, 20, operates=False) == []
