"""Open pages ask for what is new while somebody looks at them and the server answers."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Response

from tests.browser.visit import Visit
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

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
    return page


def test_a_hidden_page_asks_for_nothing_and_catches_up_when_it_is_shown(
    page: Page, world: World
) -> None:
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
