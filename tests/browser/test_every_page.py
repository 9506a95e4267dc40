"""Every page of the admin in a browser, over a row of everything: it fits the screen, nothing
keeps anybody from using it, no script or style is refused, and what people write stays text.

The pages are those of tests/staff/expected.py, which is held against all addresses that there
are: a new page is looked at here as soon as it stands there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from playwright.sync_api import Page, TimeoutError

from memories_app.store.remember import memory_remember
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.embedding.choice import embedder
from sessions_app.models import Chat, Label
from tests.browser.visit import Visit, is_scrolled_sideways, serious
from tests.staff.furnish import furnish, rows
from tests.staff.test_every_role import tries
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = (
    '<script>window.taken = true</script><img src="x" onerror="window.taken = true">'
    "\u202eright to left override \u200b\u200d\ufeff zero width {{ 7|add:7 }} %s "
    '"><b onmouseover=alert(1)>'
)
# Each kind of element on a page; fields by their names, because axe looks for their labels.
ELEMENTS = """
() => [...document.querySelectorAll("body, body *")].map((one) => [
    one.tagName, one.getAttribute("class"), one.getAttribute("role"), one.type,
    one.type === "hidden" ? "" : one.name,
].join())
"""


@dataclass(frozen=True)
class Look:
    """How pages are looked at: the last of the widths is the one that axe sees them at."""

    widths: tuple[int, int]
    scheme: Literal["light", "dark"]
    language: str


PLAIN = Look((390, 1280), "light", "en")
HOSTILE_IN_HEBREW = Look((1280, 390), "dark", "he")


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
    try:
        page.wait_for_function(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth",
            timeout=5_000,
        )
    except TimeoutError:
        return False
    return True


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


def test_every_page_is_whole(visit: Visit, staff: Page, world: World) -> None:
    furnish(world)
    wrong = look_at_all(visit, PLAIN)
    assert not wrong, "\n".join(wrong)
    assert staff.evaluate("document.documentElement.lang") == "en"


def test_what_people_write_stays_text_on_every_page(
    visit: Visit, staff: Page, world: World
) -> None:
    """In Hebrew, where every page is to be whole, too."""
    party = Party(phone=CLIENT.split("@")[0], name=HOSTILE[:200])
    world.say(CLIENT, HOSTILE, party=party)
    world.say(CLIENT, HOSTILE + "x" * 20_000, party=party)
    memory_remember(content=HOSTILE, visibility="owner", embedder=embedder(), tags=(HOSTILE[:60],))
    furnish(world)
    Chat.objects.update(client_name=HOSTILE[:200])
    Label.objects.update(name=HOSTILE[:40])
    wrong = look_at_all(visit, HOSTILE_IN_HEBREW)
    assert not wrong, "\n".join(wrong)
    assert staff.evaluate("document.documentElement.lang") == "he"
