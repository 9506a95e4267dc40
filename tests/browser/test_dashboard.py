"""The dashboard in a browser: figures, charts and their tables, kept up to date."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from playwright.sync_api import Page, expect

from tests.browser.visit import SCREENS, Visit, is_scrolled_sideways
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# What the chart of messages draws, all its bars together.
DRAWN = """
() => Chart.getChart("chart-messages").data.datasets
  .flatMap((one) => one.data).reduce((sum, value) => sum + value, 0)
"""
# Where the first and the last time of that chart stand on the screen.
PLACES = """
() => {
  const chart = Chart.getChart("chart-messages");
  const last = chart.data.labels.length - 1;
  return [0, last].map((place) => chart.scales.x.getPixelForValue(place));
}
"""
LOOK_AGAIN = "document.dispatchEvent(new Event('visibilitychange'))"


def test_figures_are_kept_up_to_date_and_lead_to_their_lists(
    visit: Visit, staff: Page, world: World
) -> None:
    world.say(CLIENT, "Good morning")
    staff.goto("/admin/")
    expect(staff.locator("#figure-messages .value")).to_have_text("2")
    expect(staff.locator("#chart-messages")).to_be_visible()
    assert staff.evaluate(DRAWN) == 2
    card = staff.locator("figure", has=staff.locator("#chart-messages"))
    card.get_by_text("As a table").click()
    world.say(OTHER_CLIENT, "Good evening")
    staff.locator("#figure-messages .value a").focus()
    staff.evaluate(LOOK_AGAIN)
    expect(staff.locator("#figure-messages .value")).to_have_text("4")
    expect(staff.locator("#figure-chats .value")).to_have_text("2")
    staff.wait_for_function(f"({DRAWN})() === 4")
    # What somebody reads and where the focus is stay.
    expect(card.locator("details")).to_have_attribute("open", "")
    expect(staff.locator("#figure-messages .value a")).to_be_focused()
    with staff.expect_navigation():
        card.locator("tbody td a").first.click()
    expect(staff.locator("#result_list")).to_contain_text("Good evening")
    expect(staff.locator("#result_list")).not_to_contain_text("answer to")
    with staff.expect_navigation():
        staff.go_back()
    with staff.expect_navigation():
        staff.get_by_role("link", name="30 days").press("Enter")
    expect(staff.get_by_role("heading", name="By the day")).to_be_visible()
    assert visit.troubles() == []


def test_charts_run_from_right_to_left_in_hebrew(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    cookie = {"name": settings.LANGUAGE_COOKIE_NAME, "value": "he", "url": visit.url}
    staff.context.add_cookies([cookie])  # type: ignore[list-item]
    staff.goto("/admin/")
    expect(staff.locator("#chart-messages")).to_be_visible()
    first, last = staff.evaluate(PLACES)
    assert first > last


def test_figures_are_not_left_standing_for_who_is_logged_out(staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    staff.goto("/admin/")
    expect(staff.locator("#figure-messages .value")).to_have_text("2")
    staff.context.clear_cookies()
    staff.evaluate(LOOK_AGAIN)
    expect(staff.get_by_text("You are logged out.")).to_be_visible()
    expect(staff.locator("#figure-messages")).to_have_count(0)


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_everybody_can_read_it(
    visit: Visit, staff: Page, world: World, width: int, scheme: str
) -> None:
    staff.set_viewport_size({"width": width, "height": 800})
    staff.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    staff.goto("/admin/?period=7")
    expect(staff.locator("#nothing")).to_be_visible()
    assert not is_scrolled_sideways(staff)
    world.say(CLIENT, "Good morning")
    staff.goto("/admin/?period=7")
    for summary in staff.get_by_text("As a table").all():
        summary.click()
    expect(staff.locator("#chart-memories")).to_be_visible()
    found = Axe().run(staff).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
    assert not is_scrolled_sideways(staff)
    assert visit.troubles() == []
