"""Every page of the admin in English, light; at last on a wide screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.every_page import Look, look_at_all
from tests.browser.visit import Visit
from tests.staff.furnish import furnish
from tests.world import World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_every_page_is_whole(visit: Visit, staff: Page, world: World) -> None:
    furnish(world)
    wrong = look_at_all(visit, Look((390, 1280), "light", "en"))
    assert not wrong, "\n".join(wrong)
    staff.goto("/admin/")
    assert staff.evaluate("document.documentElement.lang") == "en"
