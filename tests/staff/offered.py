"""What a page of the admin offers: where its links lead, and to which addresses its forms post."""

from __future__ import annotations

import re
from html import unescape

from django.urls import Resolver404, resolve

from tests.staff.expected import LISTS, OPEN, PAGES

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
