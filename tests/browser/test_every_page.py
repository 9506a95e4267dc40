"""Every page of the admin in English, light; axe sees it on a wide screen. On a phone each row of a
list is two lines."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.every_page import PHONE, Look, look_at_all
from tests.browser.visit import Visit
from tests.staff.furnish import furnish
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_every_page_is_whole(visit: Visit, staff: Page, world: World) -> None:
    furnish(world)
    world.say(CLIENT, "/remember The invoice goes to Hannah, who pays it within thirty days")
    world.say(CLIENT, "a long message " * 40 + "שורה ארוכה מאוד " * 40)
    wrong = look_at_all(visit, Look(1280, PHONE, "light", "en", lists=True))
    assert not wrong, "\n".join(wrong)
    staff.goto("/admin/")
    assert staff.evaluate("document.documentElement.lang") == "en"
