"""No page offers a link or a form to who may not use it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.test import Client
from django.urls import Resolver404, resolve

from tests.staff.expected import LISTS, OPEN, PAGES
from tests.staff.furnish import furnish, rows
from tests.staff.test_every_role import role_client, tries
from tests.world import new_world

pytestmark = pytest.mark.django_db

FORM = re.compile(r"<form\b([^>]*)>(.*?)</form>", re.DOTALL)
BUTTON = re.compile(r'<button\b(?![^>]*type="button")([^>]*)>|<input\b([^>]*type="submit"[^>]*)>')


@pytest.fixture(scope="module")
def furnished(module_rows: None) -> None:
    furnish(new_world())


@pytest.fixture(autouse=True)
def no_log_of_refusals(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.CRITICAL, logger="django.request"):
        yield


def links(html: str) -> set[str]:
    return {unescape(found) for found in re.findall(r'<a\b[^>]*\bhref="([^"#]+)', html)}


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


def post_allowed(address: str, letter: str) -> bool:
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


def offered(client: Client, letter: str) -> Iterator[str]:
    """What a page offers that is refused."""
    checked: dict[str, bool] = {}
    for one in tries(rows()):
        if one.method != "GET" or not one.may or letter not in one.may:
            continue
        answer: Any = client.get(one.address)
        if answer.status_code != 200 or "text/html" not in answer["Content-Type"]:
            continue
        html = b"".join(answer).decode()
        here = answer.request["PATH_INFO"]
        for link in links(html):
            address = urljoin(here, link)
            if not address.startswith("/admin/"):
                continue
            key = urlsplit(address).path
            if key not in checked:
                checked[key] = client.get(address).status_code != 403
            if not checked[key]:
                yield f"{one.name} ({here}) links to {address}"
        for action in posts(html):
            address = urlsplit(urljoin(here, action)).path
            if not post_allowed(address, letter):
                yield f"{one.name} ({here}) posts to {address}"


@pytest.mark.parametrize(
    "letter", ["P", *(pytest.param(each, marks=pytest.mark.slow) for each in "VRMUA")]
)
def test_no_page_offers_what_is_refused(furnished: None, letter: str) -> None:
    client, _ = role_client(letter)
    wrong = sorted(set(offered(client, letter)))
    assert not wrong, "\n" + "\n".join(wrong)
