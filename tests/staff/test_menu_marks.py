"""Every page marks the entry of the menu that it belongs to, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from tests.staff.expected import LISTS, PAGES
from tests.staff.furnish import furnish, rows
from tests.staff.test_every_role import address_of
from tests.world import new_world

pytestmark = pytest.mark.django_db

# Of the pages that aren't named after a list: the page of their entry. None has none.
ENTRIES = {
    "index": "index",
    "costs": "index",
    "global_search": None,
    "app_list": None,
    "password_change": "password_change",
    "password_change_done": "password_change",
    "two_factor": "two_factor",
    "contact": "contacts",
    "contacts": "contacts",
    "operations": "operations",
    **dict.fromkeys(
        [f"django_q_{each}" for each in ("schedule", "success", "failure", "ormq")], "operations"
    ),
    "memories_app_memory_waiting": "memories_app_memory_waiting",
    "memories_app_memory_table": "memories_app_memory_table",
}
GENERIC = ("changelist", "add", "change", "delete", "history")


@pytest.fixture(scope="module")
def furnished(module_rows: None) -> None:
    furnish(new_world())


def pages() -> Iterator[tuple[str, str]]:
    """The name and the address of every page."""
    keys = rows()
    for label in LISTS:
        base = label.replace(".", "_")
        for what in GENERIC:
            args = [] if what in ("changelist", "add") else [keys[label]]
            yield f"{base}_{what}", reverse(f"admin:{base}_{what}", args=args)
    for name, page in PAGES.items():
        if page.get is not None:
            yield name, address_of(name, page, keys)


def entry_of(name: str) -> str | None:
    """Return the address of the page's entry: the longest name that the page's begins with."""
    lists = {label.replace(".", "_"): f"{label.replace('.', '_')}_changelist" for label in LISTS}
    known = {**lists, **ENTRIES}
    begin = max((each for each in known if f"{name}_".startswith(f"{each}_")), key=len)
    entry = known[begin]
    return reverse(f"admin:{entry}") if entry else None


@pytest.fixture
def reader() -> Client:
    """Who may read and change everything, but doesn't operate the server."""
    user = User.objects.create_user("reader", password="a-sample-2026", is_staff=True)
    user.user_permissions.set(Permission.objects.exclude(codename="operate_server"))
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("who", ["admin_client", "reader"])
def test_every_page_marks_its_entry(
    furnished: None, who: str, request: pytest.FixtureRequest
) -> None:
    """Also those of raw tables, which only those who operate the server find in the menu."""
    client = request.getfixturevalue(who)
    seen, wrong = 0, []
    for name, address in pages():
        answer = client.get(address)
        html = answer.getvalue().decode(errors="replace")
        if answer.status_code != 200 or 'id="nav-sidebar"' not in html:
            continue
        seen += 1
        marked = re.findall(r'<a href="([^"]*)" aria-current="page"', html.split("</nav>")[0])
        expected = entry_of(name)
        if marked != ([expected] if expected else []):
            wrong.append(f"{name}: {marked} instead of {expected}")
    assert seen > 100
    assert wrong == []
