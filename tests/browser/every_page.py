"""Looks at every page of the admin in a browser, over a row of everything: it fits the screen,
nothing keeps anybody from using it, no script or style is refused, and no text of people is run.

The pages are those of tests/staff/expected.py, which is held against all addresses that there
are: a new page is looked at here as soon as it stands there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from django.conf import settings
from django.test import Client
from playwright.sync_api import Error, Page

from tests.browser.visit import Visit, is_scrolled_sideways, serious
from tests.staff.furnish import rows
from tests.staff.test_every_role import tries

# Each element as axe sees it: fields by their names and labels, because axe looks for those, and
# with colours and size, for the contrast. Classes that only name a model or a field say nothing.
ELEMENTS = """
() => [...document.querySelectorAll("body, body *")].map((one) => {
    const seen = getComputedStyle(one);
    const names = [...one.classList].filter((name) => !/^(app|model|field|column)-/.test(name));
    return [
        one.tagName, names.join(" "), one.getAttribute("role"), one.type,
        one.type === "hidden" ? "" : one.name, one.labels && one.labels.length,
        seen.color, seen.backgroundColor, seen.fontSize,
    ].join();
})
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


def addresses() -> list[str]:
    """All that answer a superuser: pages, parts of pages and downloads."""
    # The admin's lists are registered by the first request.
    Client().get("/admin/")
    found = {one.address for one in tries(rows()) if one.method == "GET" and "S" in (one.may or "")}
    return sorted(found)


def opened(page: Page, address: str) -> bool:
    """Go there; whether it is a whole page."""
    try:
        answer = page.goto(address)
    except Error as error:
        if "net::ERR_ABORTED" not in error.message and "Download is starting" not in error.message:
            raise
        # A file to save.
        return False
    assert answer is not None
    if answer.status != 200 or answer.request.redirected_from is not None:
        return False
    # What isn't a whole page is a part of one, which a script asks for.
    return answer.headers["content-type"].startswith("text/html") and b"<html" in answer.body()


def look(page: Page, widths: tuple[int, int]) -> list[str]:
    """What is wrong with the page that is open, at these widths."""
    wrong = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 844})
        if is_scrolled_sideways(page) and not fits_soon(page):
            wrong.append(f"it is wider than the screen of {width}")
    if page.evaluate("window.taken === true"):
        wrong.append("what somebody wrote was run")
    return wrong


def fits_soon(page: Page) -> bool:
    """Whether the page fits once its charts have followed the width of the window."""
    # Not wait_for_function: its looks are evaluated by the page, whose policy forbids that.
    return bool(page.evaluate(FITS_WITHIN_FRAMES))


def look_at_all(visit: Visit, how: Look) -> list[str]:
    """What is wrong with any page. Axe looks at the elements that are new to it: it takes longer
    than everything else, and all pages of histories, say, are of the same elements."""
    cookie = {"name": settings.LANGUAGE_COOKIE_NAME, "value": how.language, "url": visit.url}
    visit.page.context.add_cookies([cookie])  # type: ignore[list-item]
    visit.page.emulate_media(color_scheme=how.scheme)
    wrong: list[str] = []
    page = visit.page
    known: set[str] = set()
    pages: list[str] = []
    # A part of a page names no icon, and the browser asks for the usual one.
    others = ["/favicon.ico"]
    for address in addresses():
        if not opened(page, address):
            others.append(address)
            continue
        pages.append(address)
        found = look(page, how.widths)
        elements: list[str] = page.evaluate(ELEMENTS)
        new = {each: place for place, each in enumerate(elements) if each not in known}
        if new:
            found += serious(page, sorted(new.values()))
        known |= set(new)
        wrong += [f"{address}: {each}" for each in found]
    assert len(pages) > 80
    # A trouble may be told when the next page is open; each names what it is about.
    return wrong + [each for each in visit.troubles() if not each.endswith(tuple(others))]
