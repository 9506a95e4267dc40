"""The search in the head of every page, by keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visit import Visit, is_scrolled_sideways
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SOON = 20_000


def test_a_keyboard_searches_from_any_page(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Where is the lighthouse?")
    world.say(OTHER_CLIENT, "Is the door open?")
    # The field of the list's own search has the focus there.
    staff.goto("/admin/contacts/")
    staff.keyboard.press("/")
    box = staff.get_by_role("searchbox", name="Search people, messages and memories")
    expect(box).to_be_focused()
    staff.keyboard.type("lighthouse")
    hits = staff.locator(".search-hits")
    expect(hits.locator("mark").first).to_have_text("lighthouse", timeout=SOON)
    expect(hits.get_by_role("heading", name="Messages")).to_be_visible()
    # What is typed next replaces it; nothing of it is a shortcut.
    box.fill("door?")
    expect(hits.locator("mark").first).to_have_text("door", timeout=SOON)
    expect(hits).not_to_contain_text("lighthouse")
    staff.keyboard.press("ArrowDown")
    expect(hits.locator(".search-hit").first).to_be_focused()
    staff.keyboard.press("ArrowUp")
    expect(box).to_be_focused()
    staff.keyboard.press("Escape")
    expect(hits).to_be_hidden()
    expect(box).to_be_focused()
    box.fill("lighthouse")
    expect(hits.locator("mark").first).to_have_text("lighthouse", timeout=SOON)
    staff.keyboard.press("ArrowDown")
    with staff.expect_navigation():
        staff.keyboard.press("Enter")
    expect(staff).to_have_url(re.compile(r"/conversation/\?q=lighthouse&at=.*#m-"))
    assert visit.troubles() == []


def test_enter_in_the_box_opens_the_page_of_all_hits(
    visit: Visit, staff: Page, world: World
) -> None:
    world.say(CLIENT, "Where is the lighthouse?")
    staff.goto("/admin/")
    staff.keyboard.press("/")
    staff.keyboard.type("lighthouse")
    with staff.expect_navigation():
        staff.keyboard.press("Enter")
    expect(staff).to_have_url(re.compile(r"/admin/search/\?words=lighthouse"))
    expect(staff.locator(".search-found mark").first).to_have_text("lighthouse")
    # Without a script, and on a phone, it is a page like others.
    staff.set_viewport_size({"width": 390, "height": 844})
    staff.goto("/admin/")
    staff.get_by_role("link", name="Search everything").click()
    staff.get_by_role("searchbox").fill("lighthouse")
    staff.get_by_role("button", name="Search", exact=True).click()
    expect(staff.locator(".search-found mark").first).to_have_text("lighthouse")
    assert not is_scrolled_sideways(staff)
    staff.set_viewport_size({"width": 1280, "height": 800})
    assert visit.troubles() == []


def test_the_shortcuts_of_any_page_name_the_search(visit: Visit, staff: Page) -> None:
    for address in ("/admin/", "/admin/sessions_app/chat/", "/admin/memories_app/memory/waiting/"):
        staff.goto(address)
        staff.keyboard.press("?")
        shown = staff.locator("dialog[open]")
        expect(shown).to_have_count(1)
        expect(shown.locator("kbd", has_text="/").first).to_be_visible()
    assert visit.troubles() == []
