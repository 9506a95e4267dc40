"""Looks at every page of the admin in a browser, over a row of everything: it fits the screen,
nothing keeps anybody from using it, no script or style is refused, and no text of people is run.

The pages are those of tests/staff/expected.py, which is held against all addresses that there
are: a new page is looked at here as soon as it stands there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from django.conf import settings
from django.test import Client
from playwright.sync_api import Error, Page

from tests.browser.visit import MEASURED, ROW, Visit, is_long, serious
from tests.staff.expected import LISTS
from tests.staff.furnish import rows
from tests.staff.roles import tries

PHONE, HEIGHT = 390, 844
# What a page is like at a width, all at once: each question is a way to the browser and back.
SEEN = f"""
async () => {{
    await document.fonts.ready;
    // A name that the font doesn't have is shown as a word.
    const sized = (icon) =>
        icon.getBoundingClientRect().width / parseFloat(getComputedStyle(icon).fontSize);
    const words = [...document.querySelectorAll(".material-symbols-outlined")].filter(
        (icon) => sized(icon) > 2
    );
    const root = document.documentElement;
    const frames = [...document.querySelectorAll(".list-frame")];
    return {{
        width: innerWidth,
        sideways: root.scrollWidth > root.clientWidth,
        frame: frames.some((frame) => frame.scrollWidth > frame.clientWidth),
        words: words.map((icon) => icon.textContent),
        taken: window.taken === true,
        rows: ({MEASURED})([...document.querySelectorAll("{ROW}")]),
    }};
}}
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
# The histories of all rows are one template's: those of some texts that people write are enough.
HISTORY = re.compile(r"/history/$")
HISTORIES = ("/sessions_app/chat/", "/sessions_app/label/", "/memories_app/memory/")


@dataclass(frozen=True)
class Look:
    """How pages are looked at. ``axe``: the width that axe sees them at; ``other``: the width that
    they have to fit, too. ``lists``: whether the lists have to fit by themselves, and their rows
    have two lines on a phone."""

    axe: int
    other: int
    scheme: Literal["light", "dark"]
    language: str
    lists: bool = False


@dataclass
class Walk:
    """A walk through all pages. Axe, which takes longest, looks at no page whose kinds of elements
    are all ``known``."""

    page: Page
    how: Look
    known: set[str] = field(default_factory=set)
    pages: list[str] = field(default_factory=list)
    rows: int = 0

    def look(self) -> list[str]:
        """What is wrong with the page that is open, at both widths: first at the one of the page
        before, because changing it takes a while."""
        wrong = self._look_here()
        assert self.page.viewport_size is not None
        at_first = self.page.viewport_size["width"]
        then = self.how.axe if at_first == self.how.other else self.how.other
        self.page.set_viewport_size({"width": then, "height": HEIGHT})
        return wrong + self._look_here()

    def _look_here(self) -> list[str]:
        seen = self.page.evaluate(SEEN)
        width, wrong = seen["width"], []
        if seen["words"]:
            wrong.append(f"words instead of icons (make fonts): {seen['words']}")
        if seen["sideways"] and not fits_soon(self.page):
            wrong.append(f"it is wider than the screen of {width}")
        if seen["taken"]:
            wrong.append("what somebody wrote was run")
        if self.how.lists and seen["frame"] and width != PHONE:
            wrong.append("its list is wider than the screen")
        if self.how.lists and width == PHONE:
            self.rows += len(seen["rows"])
            wrong += [f"a row isn't of two lines: {row}" for row in seen["rows"] if is_long(row)]
        if width == self.how.axe:
            wrong += serious(self.page, self.known)
        return wrong


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
    is_whole = "document.doctype !== null"
    return answer.headers["content-type"].startswith("text/html") and bool(page.evaluate(is_whole))


def fits_soon(page: Page) -> bool:
    """Whether the page fits once its charts have followed the width of the window."""
    # Not wait_for_function: its looks are evaluated by the page, whose policy forbids that.
    return bool(page.evaluate(FITS_WITHIN_FRAMES))


def look_at_all(visit: Visit, how: Look) -> list[str]:
    """What is wrong with any page."""
    cookie = {"name": settings.LANGUAGE_COOKIE_NAME, "value": how.language, "url": visit.url}
    visit.page.context.add_cookies([cookie])  # type: ignore[list-item]
    visit.page.emulate_media(color_scheme=how.scheme, reduced_motion="reduce")
    visit.page.set_viewport_size({"width": how.axe, "height": HEIGHT})
    walk = Walk(visit.page, how)
    wrong: list[str] = []
    # A part of a page names no icon, and the browser asks for the usual one.
    others = ["/favicon.ico"]
    for address in addresses():
        if HISTORY.search(address) and not any(each in address for each in HISTORIES):
            continue
        if not opened(visit.page, address):
            others.append(address)
            continue
        walk.pages.append(address)
        wrong += [f"{address}: {each}" for each in walk.look()]
    assert len(walk.pages) > 80
    assert not how.lists or walk.rows > len(LISTS) / 2
    # A trouble may be told when the next page is open; each names what it is about.
    return wrong + [each for each in visit.troubles() if not each.endswith(tuple(others))]
