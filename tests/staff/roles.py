"""The roles of staff, and what each of them tries: every address of the admin, by GET and by POST,
as tests/staff/expected.py says who may."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from typing import Any
from urllib.parse import urljoin, urlsplit

from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import Resolver404, resolve, reverse

from memoryproject.staff_site.site import FORM_PAGES
from tests.database import statements
from tests.staff.expected import BY_WHAT_IS_ASKED, HIDDEN, LISTS, OPEN, PAGES, Page
from tests.staff.people import person

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
# Each has all rights of the one before it, and an auditor (U) is beside those between P and A: see
# tests/staff/test_groups.py.
CHAIN = "PVRMAS"
# Of these pages of a list; a change asks for more by POST.
SAME_RIGHT = ("_changelist", "_add", "_delete", "_history")
WRITES = re.compile(r'^\s*(INSERT INTO|UPDATE|DELETE FROM) "?(?!audit_|django_session)(\w+)', re.I)


@dataclass(frozen=True)
class Try:
    """One request, and who may make it: letters, or None where the method isn't answered."""

    method: str
    name: str
    address: str
    may: str | None
    data: Any = None


@dataclass(frozen=True)
class Opened:
    """A page, by the name of its address."""

    name: str
    address: str
    html: str


def role_client(letter: str) -> tuple[Client, User | None]:
    client = Client(raise_request_exception=False)
    groups = ROLES[letter]
    if groups is None:
        return client, None
    user = person(f"role {letter}", *groups, is_superuser=letter == "S")
    client.force_login(user)
    return client, user


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


def is_told_by_others(letter: str, one: Try) -> bool:
    """Whether it is known from another role's try how this one ends.

    More rights never take a page away: the first role of the chain that may tells of those after
    it, and the last one that may not of those before it. Who may opens a page nevertheless for what
    it offers; an administrator doesn't, to whom nothing is refused that a superuser may do.
    """
    if letter in "NS":
        return False
    if one.may is None:
        return True
    if letter == "U":
        return "A" not in one.may
    at = CHAIN.index(letter)
    if letter in one.may:
        is_first = at == 0 or CHAIN[at - 1] not in one.may
        return not is_first and (one.method == "POST" or letter == "A")
    return CHAIN[at + 1] not in one.may or (letter == "P" and "U" not in one.may)


def is_known_by_get(letter: str, one: Try) -> bool:
    """Whether this is a POST to a page of a list by a role that GET let in, where one right is
    asked for both, or the history of what the role has seen: the superuser alone gets these."""
    is_same = one.name.endswith(SAME_RIGHT) and one.name not in PAGES
    is_more = one.method == "POST" or one.name.endswith("_history")
    return letter != "S" and is_more and is_same and letter in (one.may or "")


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
    """Tries addresses in a role, and keeps the pages that opened."""

    letter: str
    client: Client
    pages: list[Opened] = field(default_factory=list)

    def judged(self, one: Try) -> str:
        """What is wrong; empty where all is as expected."""
        answer, written = made(self.client, one)
        refused = is_refused(answer, one.name)
        where = f"{one.method} {one.name}: {answer.status_code}"
        if answer.status_code >= 500:
            return f"{where}, an error"
        is_page = answer.get("Content-Type", "").startswith("text/html")
        if is_page and "no-store" not in answer.get("Cache-Control", ""):
            return f"{where}, kept by the browser"
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
        self._keep(one, answer)
        return ""

    def look(self, one: Try) -> None:
        self._keep(one, self.client.get(one.address))

    def _keep(self, one: Try, answer: Any) -> None:
        is_page = answer.get("Content-Type", "").startswith("text/html")
        if one.method == "GET" and answer.status_code == 200 and is_page:
            self.pages.append(Opened(one.name, one.address, b"".join(answer).decode()))

    def offered_in_vain(self) -> set[str]:
        """The links and forms of the pages that would be refused."""
        return {
            f"{page.name} ({page.address}) leads by {method} to {address}"
            for page in self.pages
            for method, offered in (("GET", links(page.html)), ("POST", posts(page.html)))
            for each in offered
            if (address := urljoin(page.address, each)).startswith("/admin/")
            and not may_use(urlsplit(address).path, self.letter, method)
        }


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


@cache
def may_use(path: str, letter: str, method: str) -> bool:
    """Whether a role may go or post there, as tests/staff/expected.py says."""
    is_get = method == "GET"
    try:
        name = resolve(path).url_name or ""
    except Resolver404:
        return True
    if name in OPEN or (is_get and name in HIDDEN | BY_WHAT_IS_ASKED):
        return True
    if name in PAGES:
        may = PAGES[name].get if is_get else PAGES[name].post or ""
        # A GET of what is posted leads to the page of the form.
        return may is None or letter in may
    base, _, what = name.rpartition("_")
    lists = {label.replace(".", "_"): each for label, each in LISTS.items()}
    if base not in lists:
        # An address without a name leads on to one.
        return is_get
    expected = lists[base]
    by_name = {"add": expected.add, "delete": expected.delete, "changelist": expected.view}
    return letter in by_name.get(what, expected.view if is_get else expected.change)
