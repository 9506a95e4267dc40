"""Every role tries every address and every action of the admin, by GET and by direct POST, and no
page offers it a link or a form that it may not use. What is expected is in tests/staff/expected.py,
which says how to add to it."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client, RequestFactory
from django.urls import Resolver404, URLPattern, URLResolver, get_resolver, resolve, reverse

from memoryproject.staff_site.site import FORM_PAGES
from tests.database import statements
from tests.staff.expected import BY_WHAT_IS_ASKED, HIDDEN, LISTS, OPEN, PAGES, Page
from tests.staff.furnish import furnish, rows
from tests.staff.people import person
from tests.world import new_world

pytestmark = pytest.mark.django_db

ROLES = {
    "N": None,
    "P": (),
    "V": ("Viewer",),
    "R": ("Reviewer",),
    "M": ("Memory manager",),
    "U": ("Auditor",),
    "A": ("Administrator",),
    "S": (),
}
# These are refused most, which costs little; the others open every page that there is.
QUICK = "NPV"
LETTERS = [
    letter if letter in QUICK else pytest.param(letter, marks=pytest.mark.slow) for letter in ROLES
]
GENERIC = ("changelist", "add", "change", "delete", "history")
# Of these pages of a list; a change asks for more by POST.
SAME_RIGHT = ("_changelist", "_add", "_delete", "_history")
# A list leads to each of its rows, and what is refused doesn't depend on the row: so many are
# followed beside the one that every role tries.
MAX_FOLLOWED = 1
WRITES = re.compile(r'^\s*(INSERT INTO|UPDATE|DELETE FROM) "?(?!audit_|django_session)(\w+)', re.I)


@dataclass(frozen=True)
class Try:
    """One request, and who may make it: letters, or None where the method isn't answered."""

    method: str
    name: str
    address: str
    may: str | None
    data: Any = None


def role_client(letter: str) -> tuple[Client, User | None]:
    client = Client(raise_request_exception=False)
    groups = ROLES[letter]
    if groups is None:
        return client, None
    user = person(f"role {letter}", *groups, is_superuser=letter == "S")
    client.force_login(user)
    return client, user


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


def address_of(name: str, page: Page, keys: dict[str, Any]) -> str:
    args = {key: keys.get(value, value) for key, value in page.args.items()}
    return reverse(f"admin:{name}", kwargs=args)


def tries(keys: dict[str, Any]) -> Iterator[Try]:
    for label, expected in LISTS.items():
        base = label.replace(".", "_")
        one = [keys[label]]
        views: list[tuple[str, list[Any], Any, Any]] = [
            ("changelist", [], expected.view, expected.view)
        ]
        views += [("add", [], expected.add, expected.add)]
        views += [("change", one, expected.view, expected.change)]
        views += [("delete", one, expected.delete, expected.delete)]
        views += [("history", one, expected.view, expected.view)]
        for what, args, get, post in views:
            name = f"{base}_{what}"
            address = reverse(f"admin:{name}", args=args)
            yield Try("GET", name, address, get)
            yield Try("POST", name, address, post, {})
    for name, page in PAGES.items():
        address = address_of(name, page, keys)
        yield Try("GET", name, address, page.get)
        yield Try("POST", name, address, page.post, dict(page.data))


def is_known_by_get(letter: str, one: Try) -> bool:
    """Whether this is a POST to a page of a list by a role that GET let in, where one right is
    asked for both, or the history of what the role has seen: the superuser alone gets these."""
    is_same = one.name.endswith(SAME_RIGHT) and one.name not in PAGES
    is_more = one.method == "POST" or one.name.endswith("_history")
    return is_more and is_same and one.may is not None and letter in one.may


def is_refused(answer: Any, name: str) -> bool:
    if answer.status_code == 302 and answer.url.startswith("/admin/login/"):
        return True
    # Whoever isn't logged in can't log out: to the first page, which leads to the login.
    if name == "logout" and answer.status_code == 302 and answer.url == "/admin/":
        return True
    return answer.status_code in (401, 403) or (name in HIDDEN and answer.status_code == 404)


def made(client: Client, one: Try, **more: Any) -> tuple[Any, set[str]]:
    """The answer, and the tables that were written to. Nothing of it lasts."""
    cookies = deepcopy(client.cookies)
    with transaction.atomic(), statements() as queries:
        send = client.get if one.method == "GET" else client.post
        answer = send(one.address, one.data or {}, **more)
        transaction.set_rollback(True)
    client.cookies = cookies
    written = {found[2] for each in queries if (found := WRITES.match(each))}
    return answer, written


@dataclass
class Visitor:
    """Tries addresses in a role, and remembers what the pages that opened offer."""

    letter: str
    client: Client
    pages: list[tuple[Try, set[str], set[str]]] = field(default_factory=list)
    # Whether what is at an address is refused.
    refused: dict[str, bool] = field(default_factory=dict)
    followed: Counter[str] = field(default_factory=Counter)

    def judged(self, one: Try) -> str:
        """What is wrong; empty where all is as expected."""
        answer, written = made(self.client, one)
        refused = is_refused(answer, one.name)
        where = f"{one.method} {one.name}: {answer.status_code}"
        if answer.status_code >= 500:
            return f"{where}, an error"
        unanswered = 302 if one.method == "GET" and one.name in FORM_PAGES else 405
        if one.may is None and answer.status_code != unanswered and not refused:
            return f"{where}, though nobody may {one.method}"
        may = one.may is not None and self.letter in one.may
        if may and (refused or answer.status_code == 405):
            return f"{where}, refused to who may"
        if not may and one.may is not None and not refused:
            return f"{where}, let through"
        if (not may or refused) and written:
            return f"{where}, wrote to {', '.join(sorted(written))}"
        if one.method == "GET":
            self._remember(one, answer)
        return ""

    def _remember(self, one: Try, answer: Any) -> None:
        self.refused[urlsplit(one.address).path] = answer.status_code == 403
        if answer.status_code == 200 and "text/html" in answer["Content-Type"]:
            html = b"".join(answer).decode()
            self.pages.append((one, links(html), posts(html)))

    def offered_in_vain(self) -> Iterator[str]:
        """The links and forms of the pages that are refused."""
        for one, linked, posted in self.pages:
            for link in linked:
                address = urljoin(one.address, link)
                if address.startswith("/admin/") and self._is_refused(address):
                    yield f"{one.name} ({one.address}) links to {address}"
            for action in posted:
                address = urlsplit(urljoin(one.address, action)).path
                if not may_post(address, self.letter):
                    yield f"{one.name} ({one.address}) posts to {address}"

    def _is_refused(self, address: str) -> bool:
        path = urlsplit(address).path
        if path not in self.refused:
            name = resolve(path).url_name or path
            # Known by the page of the row: see is_known_by_get.
            name = "history" if name.endswith("_history") else name
            self.followed[name] += 1
            if self.followed[name] > MAX_FOLLOWED:
                return False
            self.refused[path] = self.client.get(address).status_code == 403
        return self.refused[path]


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


@pytest.fixture(autouse=True)
def no_log_of_refusals(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Each would be written with its traceback, which takes longer than to refuse."""
    with caplog.at_level(logging.CRITICAL, logger="django.request"):
        yield


@pytest.fixture(scope="module")
def furnished(module_rows: None) -> None:
    furnish(new_world())


@pytest.mark.parametrize("letter", LETTERS)
def test_a_role_tries_every_address_and_is_offered_no_other(furnished: None, letter: str) -> None:
    visitor = Visitor(letter, role_client(letter)[0])
    tried = [one for one in tries(rows()) if letter == "S" or not is_known_by_get(letter, one)]
    wrong = [found for one in tried if (found := visitor.judged(one))]
    wrong += sorted(set(visitor.offered_in_vain()))
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("letter", ROLES)
def test_a_role_tries_every_action(furnished: None, letter: str) -> None:
    client, user = role_client(letter)
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
            if letter not in may:
                data = {"action": name, "_selected_action": [keys[label]], "post": "yes"}
                one = Try("POST", name, address, "", data)
                answer, written = made(client, one)
                if written or answer.status_code >= 500:
                    wrong.append(f"{label}.{name}: {answer.status_code}, wrote to {written}")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("letter", "NP")
def test_a_page_that_asks_by_itself_is_answered_without_a_page(letter: str) -> None:
    client, _ = role_client(letter)
    for label in LISTS:
        address = reverse(f"admin:{label.replace('.', '_')}_changelist")
        answer = client.get(address, headers={"X-Requested-With": "live"})
        assert answer.status_code == (401 if letter == "N" else 403)


# What a page offers: where its links lead, and to which addresses its forms post.


LINK = re.compile(r'<a\b[^>]*\bhref="([^"#]+)')
FORM = re.compile(r"<form\b([^>]*)>(.*?)</form>", re.DOTALL)
BUTTON = re.compile(r'<button\b(?![^>]*type="button")([^>]*)>|<input\b([^>]*type="submit"[^>]*)>')


def links(html: str) -> set[str]:
    return {unescape(found) for found in LINK.findall(html)}


def posts(html: str) -> set[str]:
    """The addresses to which buttons post; "" stands for the page's own."""
    found = set()
    for attributes, inside in FORM.findall(html):
        if 'method="post"' not in attributes.lower():
            continue
        action = re.search(r'\saction="([^"]*)"', attributes)
        for button in BUTTON.findall(inside):
            own = re.search(r'\sformaction="([^"]*)"', "".join(button))
            address = own or action
            found.add(unescape(address[1]) if address else "")
    return found


def may_post(address: str, letter: str) -> bool:
    """Whether a role may post there, as tests/staff/expected.py says."""
    try:
        name = resolve(address).url_name or ""
    except Resolver404:
        return True
    if name in OPEN:
        return True
    if name in PAGES:
        return letter in (PAGES[name].post or "")
    base, _, what = name.rpartition("_")
    lists = {label.replace(".", "_"): each for label, each in LISTS.items()}
    if base not in lists:
        return False
    expected = lists[base]
    may = {"changelist": expected.view, "add": expected.add, "delete": expected.delete}
    return letter in may.get(what, expected.change)
