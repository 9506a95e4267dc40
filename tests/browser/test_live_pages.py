"""Open pages in a browser: what comes in appears by itself while somebody looks at them and the
server answers, and nobody loses their place."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone
from playwright.sync_api import Page, Response, expect

from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.models import ChatActivity
from tests.browser.test_conversation import hurried, press
from tests.browser.visit import SOON, Visit
from tests.processes.waiting import wait_until
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


INBOX = "/admin/sessions_app/chat/"
# A fixture that stands elsewhere.
__all__ = ["hurried"]


@pytest.mark.usefixtures("hurried")
def test_a_message_appears_in_the_open_inbox(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    staff.goto(INBOX)
    first = staff.locator(".chat").first
    expect(first).to_contain_text(number_shown(CLIENT))
    chosen = staff.locator(".chat", has_text=number_shown(CLIENT)).get_by_role("checkbox")
    chosen.check()
    world.receive(message_from(OTHER_CLIENT, "Is it ready?"))
    expect(first).to_contain_text("Is it ready?", timeout=SOON)
    expect(staff).to_have_title(re.compile(r"^\(2\) Inbox"), timeout=SOON)
    # The tick and the focus are where they were.
    expect(chosen).to_be_checked()
    expect(chosen).to_be_focused()
    world.receive(message_from(CLIENT, "And this?"))
    expect(first).to_contain_text("And this?", timeout=SOON)
    expect(chosen).to_be_checked()
    expect(chosen).to_be_focused()
    # Reviewed is what the rows show by now.
    with staff.expect_navigation():
        staff.get_by_role("button", name="Apply").last.click()
    expect(first.locator(".state.good")).to_have_text("reviewed")
    assert visit.troubles() == []


def test_the_sound_is_off_until_somebody_wants_it(staff: Page, world: World) -> None:
    staff.goto(INBOX)
    sound = staff.get_by_role("button", name="Sound")
    expect(sound).to_have_attribute("aria-pressed", "false")
    sound.click()
    staff.reload()
    expect(sound).to_have_attribute("aria-pressed", "true")


@pytest.mark.usefixtures("hurried")
def test_the_list_is_searched_while_somebody_types(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    world.say(OTHER_CLIENT, "Is the door open?")
    staff.goto(INBOX)
    expect(staff.locator(".chat")).to_have_count(2)
    staff.keyboard.press("f")
    staff.keyboard.type("0456")
    expect(staff.locator(".chat")).to_have_count(1, timeout=SOON)
    expect(staff).to_have_url(re.compile(r"\?q=0456"))
    # Nothing that is typed is a shortcut, and what comes in keeps to the search.
    search = staff.get_by_label("Search", exact=True)
    expect(search).to_be_focused()
    world.receive(message_from(CLIENT, "me first"), message_from(OTHER_CLIENT, "and the window?"))
    expect(staff.locator(".chat")).to_contain_text("and the window?", timeout=SOON)
    expect(staff.locator(".chat")).to_have_count(1)
    search.fill("door")
    expect(staff.locator(".hits mark").first).to_have_text("door", timeout=SOON)
    staff.reload()
    expect(staff.locator(".hits mark").first).to_have_text("door")
    search.fill("")
    expect(staff.locator(".chat")).to_have_count(2, timeout=SOON)
    expect(staff.locator(".hits")).to_have_count(0)
    assert visit.troubles() == []


@pytest.mark.usefixtures("hurried")
def test_a_keyboard_alone_works_through_the_list(visit: Visit, staff: Page, world: World) -> None:
    for name in (CLIENT, OTHER_CLIENT):
        world.say(name, "hello")
    staff.goto(f"{INBOX}?state=open")
    first, second = staff.locator(".chat").first, staff.locator(".chat").last
    press(staff, "j")
    expect(first.get_by_role("link")).to_be_focused()
    press(staff, "ArrowDown")
    expect(second.get_by_role("link")).to_be_focused()
    press(staff, "a")
    expect(second.locator(".assignee")).to_contain_text("staff", timeout=SOON)
    expect(second.get_by_role("link")).to_be_focused()
    press(staff, "k", "e")
    expect(staff.get_by_text("1 conversation is marked as reviewed.")).to_be_visible(timeout=SOON)
    # Reviewed, it left this list, and the next one is in its place.
    left = staff.locator(".chat")
    expect(left).to_have_count(1)
    expect(left).to_contain_text(number_shown(CLIENT))
    expect(left.get_by_role("link")).to_be_focused()
    press(staff, "s")
    staff.get_by_role("dialog").get_by_role("button", name="For 4 hours").click()
    expect(staff.get_by_text("1 conversation is snoozed until")).to_be_visible(timeout=SOON)
    expect(staff.locator(".chat")).to_have_count(0)
    assert visit.troubles() == []


@pytest.mark.usefixtures("hurried")
def test_the_keys_work_on_a_hebrew_keyboard(staff: Page, world: World) -> None:
    world.say(CLIENT, "hello")
    staff.goto(INBOX)
    for key, code in (("ח", "KeyJ"), ("ק", "KeyE")):
        staff.evaluate(
            """([key, code]) => document.activeElement.dispatchEvent(
                new KeyboardEvent("keydown", {key, code, bubbles: true}))""",
            [key, code],
        )
    expect(staff.get_by_text("1 conversation is marked as reviewed.")).to_be_visible(timeout=SOON)


def test_times_are_told_from_now(staff: Page, world: World) -> None:
    for number, ago in enumerate(
        (timedelta(), timedelta(minutes=3), timedelta(hours=5), timedelta(days=2))
    ):
        name = f"1555010{number:04}@c.us"
        world.receive(message_from(name, "hello"))
        then = timezone.now() - ago - timedelta(seconds=5)
        ChatActivity.objects.filter(chat=world.chat(name)).update(last_at=then)
    staff.goto(INBOX)
    expect(staff.locator(".chat time")).to_have_text(["now", "3 min", "5 hr", "2 days"])
    day = ChatActivity.objects.earliest("last_at").last_at
    expect(staff.locator(".chat time").last).to_have_attribute("title", f"{day:%-d %b %Y, %H:%M}")
    staff.get_by_role("button", name="עברית").click()
    expect(staff.locator(".chat time")).to_have_text(["עכשיו", "3 דק׳", "5 שע׳", "יומיים"])


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


@pytest.mark.usefixtures("hurried")
def test_figures_stay_fresh_and_lead_to_lists(visit: Visit, staff: Page, world: World) -> None:
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
    wait_until(lambda: staff.evaluate(DRAWN) == 4, "the chart is drawn anew")
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


# A page that a test hides and shows, that counts how often it asks, and whose server may be away.
COUNTED = """
(() => {
  const ask = window.fetch;
  Object.assign(window, { isHidden: false, isAway: false, requests: 0 });
  Object.defineProperty(document, "hidden", { get: () => window.isHidden });
  window.fetch = (address, options) => {
    if (options.method === "HEAD") return ask(address, options);
    window.requests++;
    return window.isAway ? Promise.reject(new TypeError("away")) : ask(address, options);
  };
  window.setHidden = (is) => {
    window.isHidden = is;
    document.dispatchEvent(new Event("visibilitychange"));
  };
})();
"""


def is_answer(response: Response) -> bool:
    return "x-live" in response.request.headers and response.request.method == "GET"


def is_news(response: Response) -> bool:
    return is_answer(response) and response.status == 200


@pytest.fixture(params=["conversation", "dashboard", "inbox"])
def page(request: pytest.FixtureRequest, timed: Visit, world: World) -> Page:
    world.say(CLIENT, "Good morning")
    chats = "/admin/sessions_app/chat/"
    addresses = {
        "conversation": f"{chats}{world.chat(CLIENT).pk}/conversation/",
        "dashboard": "/admin/",
        "inbox": chats,
    }
    page = timed.page
    page.add_init_script(COUNTED)
    # Without the list of the inbox beside a conversation, which asks, too.
    page.set_viewport_size({"width": 1100, "height": 800})
    page.goto(addresses[request.param])
    if request.param == "dashboard":
        # It asks once its plots are drawn, whose library comes after the page.
        page.wait_for_function("window.Chart && Chart.getChart('chart-messages')")
    return page


def test_a_hidden_page_asks_nothing_and_catches_up_when_shown(page: Page, world: World) -> None:
    page.evaluate("setHidden(true)")
    page.wait_for_load_state("networkidle")
    before = page.evaluate("requests")
    page.clock.run_for(14_000)
    assert page.evaluate("requests") == before
    world.say(CLIENT, "Is it ready?")
    with page.expect_response(is_news):
        page.evaluate("setHidden(false)")


def test_a_server_that_is_away_is_asked_ever_more_seldom(page: Page) -> None:
    page.evaluate("isAway = true")
    before = page.evaluate("requests")
    page.clock.run_for(62_000)
    # After 2, 6, 14, 30 and 62 seconds, instead of 31 times; a conversation has two questions.
    assert 2 <= page.evaluate("requests") - before <= 10
    page.evaluate("isAway = false")
    with page.expect_response(is_answer):
        page.evaluate("setHidden(false)")
