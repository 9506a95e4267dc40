"""Every page of the admin in Hebrew, dark, as axe sees it on a narrow screen; with texts that would
like to be more than text. A file of its own: it takes as long as the English one, beside it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.every_page import PHONE, Look, look_at_all
from tests.browser.visit import Visit
from tests.staff.furnish import furnish_hostile
from tests.world import World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_what_people_write_is_text_on_every_page(visit: Visit, staff: Page, world: World) -> None:
    furnish_hostile(world)
    wrong = look_at_all(visit, Look(PHONE, 1280, "dark", "he", lists=True))
    assert not wrong, "\n".join(wrong)
    staff.goto("/admin/")
    assert staff.evaluate("document.documentElement.lang") == "he"
