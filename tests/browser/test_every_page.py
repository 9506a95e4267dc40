"""Every page of the admin in a browser, over a row of everything: it fits the screen, nothing
keeps anybody from using it, no script or style is refused, and what people write stays text.

The pages are those of tests/staff/expected.py, which is held against all addresses that there
are: a new page is looked at here as soon as it stands there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from playwright.sync_api import Page

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


@dataclass(frozen=True)
class Screen:
    width: int
    scheme: Any


WIDE, NARROW = Screen(1280, "light"), Screen(390, "dark")
# The screen that axe sees a language's pages on is the last: it needs a second for some of them.
LANGUAGES = {"en": (NARROW, WIDE), "he": (WIDE, NARROW)}


def pages() -> list[str]:
    """The addresses that answer a superuser with a page."""
    client = Client()
    client.force_login(get_user_model()._default_manager.get(username="staff"))
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


def look(visit: Visit, address: str, screens: tuple[Screen, ...]) -> list[str]:
    """What is wrong with a page on these screens, with its address."""
    page, before = visit.page, len(visit.troubles())
    show(page, screens[0])
    page.goto(address)
    wrong = []
    for screen in screens:
        show(page, screen)
        if is_scrolled_sideways(page):
            wrong.append(f"it is wider than the screen of {screen.width}")
    if page.evaluate("window.taken === true"):
        wrong.append("what somebody wrote was run")
    return [f"{address}: {each}" for each in [*visit.troubles()[before:], *wrong]]


def show(page: Page, screen: Screen) -> None:
    page.set_viewport_size({"width": screen.width, "height": 844})
    page.emulate_media(color_scheme=screen.scheme)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_is_whole(visit: Visit, staff: Page, world: World, language: str) -> None:
    furnish(world)
    cookie = {"name": settings.LANGUAGE_COOKIE_NAME, "value": language, "url": visit.url}
    staff.context.add_cookies([cookie])  # type: ignore[list-item]
    wrong = []
    for address in pages():
        wrong += look(visit, address, LANGUAGES[language])
        wrong += [f"{address}: {each}" for each in serious(staff)]
    assert not wrong, "\n".join(wrong)
    assert staff.evaluate("document.documentElement.lang") == language


def test_what_people_write_stays_text_on_every_page(
    visit: Visit, staff: Page, world: World
) -> None:
    party = Party(phone=CLIENT.split("@")[0], name=HOSTILE[:200])
    world.say(CLIENT, HOSTILE, party=party)
    world.say(CLIENT, HOSTILE + "x" * 100_000, party=party)
    memory_remember(content=HOSTILE, visibility="owner", embedder=embedder(), tags=(HOSTILE[:60],))
    furnish(world)
    Chat.objects.update(client_name=HOSTILE[:200])
    Label.objects.update(name=HOSTILE[:40])
    wrong = [each for address in pages() for each in look(visit, address, (NARROW,))]
    assert not wrong, "\n".join(wrong)
