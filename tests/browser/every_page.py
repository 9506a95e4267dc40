"""Looks at every page of the admin in a browser, over a row of everything: it fits the screen,
nothing keeps anybody from using it, no script or style is refused, and no text of people is run.

The pages are those of tests/staff/expected.py, which is held against all addresses that there
are: a new page is looked at here as soon as it stands there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from playwright.sync_api import Page

from tests.browser.visit import Visit, is_scrolled_sideways, serious
from tests.staff.furnish import rows
from tests.staff.test_every_role import tries

# Each kind of element on a page; fields by their names, because axe looks for their labels.
ELEMENTS = """
() => [...document.querySelectorAll("body, body *")].map((one) => [
    one.tagName, one.getAttribute("class"), one.getAttribute("role"), one.type,
    one.type === "hidden" ? "" : one.name,
].join())
"""
# Charts follow the width of the window some frames later; a page that doesn't fit by then never
# does.
FITS_WITHIN_FRAMES = """
async () => {
    const root = document.documentElement;
    for (let frame = 0; frame < 300 && root.scrollWidth > root.clientWidth; frame++) {
        await new Promise(requestAnimationFrame);
    }
    return root.scrollWidth <= root.clientWidth;
}
"""


@dataclass(frozen=True)
class Look:
    """How pages are looked at: the last of the widths is the one that axe sees them at."""

    widths: tuple[int, int]
    scheme: Literal["light", "dark"]
    language: str


def pages() -> list[str]:
    """The addresses that answer a superuser with a page."""
    client = Client()
    client.force_login(get_user_model()._default_manager.get(username="staff"))
    # The admin's lists are registered by the first request.
    client.get("/admin/")
    found = []
    for one in tries(rows()):
        if one.method != "GET" or one.may is None or "S" not in one.may:
            continue
        answer = client.get(one.address)
        # What isn't a whole page is a part of one, which a script asks for.
        is_page = answer["Content-Type"].startswith("text/html") and b"<html" in answer.content
        if answer.status_code == 200 and is_page:
            found.append(one.address)
    assert len(found) > 80
    return sorted(set(found))


def look(visit: Visit, address: str, widths: tuple[int, int]) -> list[str]:
    """What is wrong with a page at these widths, with its address."""
    page, before = visit.page, len(visit.troubles())
    page.goto(address)
    wrong = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 844})
        if is_scrolled_sideways(page) and not fits_soon(page):
            wrong.append(f"it is wider than the screen of {width}")
    if page.evaluate("window.taken === true"):
        wrong.append("what somebody wrote was run")
    return [f"{address}: {each}" for each in [*visit.troubles()[before:], *wrong]]


def fits_soon(page: Page) -> bool:
    """Whether the page fits once its charts have followed the width of the window."""
    # Not wait_for_function: its looks are evaluated by the page, whose policy forbids that.
    return bool(page.evaluate(FITS_WITHIN_FRAMES))


def look_at_all(visit: Visit, how: Look) -> list[str]:
    """What is wrong with any page. Axe looks at those that hold something new to it: it takes
    longer than everything else, and all pages of histories, say, are of the same elements."""
    cookie = {"name": settings.LANGUAGE_COOKIE_NAME, "value": how.language, "url": visit.url}
    visit.page.context.add_cookies([cookie])  # type: ignore[list-item]
    visit.page.emulate_media(color_scheme=how.scheme)
    wrong: list[str] = []
    known: set[str] = set()
    for address in pages():
        wrong += look(visit, address, how.widths)
        elements = set(visit.page.evaluate(ELEMENTS))
        if not elements <= known:
            wrong += [f"{address}: {each}" for each in serious(visit.page)]
        known |= elements
    return wrong
