"""The first page, as a newcomer's browser shows it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from tests.browser.visit import Visit, is_scrolled_sideways, style

pytestmark = pytest.mark.browser


def test_it_tells_what_to_do_and_asks_no_other_host(visit: Visit) -> None:
    visit.page.goto("/")
    assert visit.page.title() == "WhatsApp memory"
    steps = visit.page.locator(".steps h3").all_inner_texts()
    assert [step.split("\n")[0] for step in steps][:2] == [
        "Talk to the assistant",
        "Watch WhatsApp conversations",
    ]
    assert visit.page.get_by_text("make demo", exact=True).is_visible()
    assert visit.troubles() == []


def test_its_style_sheet_is_there(visit: Visit) -> None:
    visit.page.goto("/")
    assert style(visit.page, "header", "backgroundColor") == "rgb(11, 107, 79)"


def test_it_says_which_part_is_not_up(visit: Visit) -> None:
    """No workers run in this test."""
    visit.page.goto("/")
    assert visit.page.locator("#state").inner_text() == "Not everything is up"
    down = visit.page.locator(".parts .down")
    assert "qcluster" in down.inner_text()


def test_it_fits_a_phone(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 360, "height": 740})
    visit.page.goto("/")
    assert not is_scrolled_sideways(visit.page)


def test_it_is_dark_for_who_likes_it_dark(browser: Browser, live_server: LiveServer) -> None:
    papers = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(live_server.url)
        papers.append(style(page, "body", "backgroundColor"))
        context.close()
    assert papers == ["rgb(246, 248, 247)", "rgb(19, 25, 23)"]


def test_its_links_lead_to_the_admin(visit: Visit) -> None:
    visit.page.goto("/")
    visit.page.get_by_role("link", name="Open the admin").click()
    expect(visit.page.locator("#id_username")).to_be_visible()
    assert visit.troubles() == []
