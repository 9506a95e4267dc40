"""Pages that are told of news by a stream, behind the real front door."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Response, expect

from tests.processes.installation import family, kill
from tests.processes.listening import sign_in, start_streams, with_streams
from tests.processes.posting import new_phone
from tests.processes.stage import Stage, stage

pytestmark = [pytest.mark.browser, pytest.mark.processes]

INBOX = "/admin/sessions_app/chat/"
SOON = 30_000
# Nothing happens that waits for longer than this, however slow the server is.
PATIENT = """
performance.now = () => 0;
const begin = window.setTimeout;
window.setTimeout = (act, wait, ...rest) => (wait > {longest} ? 0 : begin(act, wait, ...rest));
"""
# Asking every few seconds is over; then it is the only way, because a page with a stream that says
# nothing asks every 20 seconds.
WITHOUT_POLLING, WITH_POLLING = PATIENT.format(longest=1000), PATIENT.format(longest=2500)
COUNTED = """
window.streams = [];
window.EventSource = class extends EventSource {
  constructor(...given) { super(...given); window.streams.push(this); }
};
Object.defineProperty(document, "hidden", { get: () => Boolean(window.isHidden) });
window.setHidden = (is) => {
  window.isHidden = is;
  document.dispatchEvent(new Event("visibilitychange"));
};
"""
STATES = "streams.map((each) => each.readyState)"
OPEN, CLOSED = 1, 2


@pytest.fixture(scope="module")
def front() -> Iterator[Stage]:
    with stage(run=with_streams) as started:
        yield started


@pytest.fixture(scope="module")
def session(front: Stage) -> str:
    return sign_in(front.installation, "dana")[0]


@pytest.fixture
def page(browser: Browser, front: Stage, session: str) -> Iterator[Page]:
    url = front.installation.url
    context = browser.new_context(base_url=url, viewport={"width": 1400, "height": 800})
    context.add_cookies([{"name": "sessionid", "value": session, "url": url}])
    context.add_init_script(COUNTED)
    yield context.new_page()
    context.close()


def is_asked_for(response: Response) -> bool:
    return "x-live" in response.request.headers and "viewers" not in response.url


def opened(page: Page, address: str) -> None:
    """Open the page, and wait until it has asked for what its stream began with."""
    with page.expect_response(is_asked_for, timeout=SOON):
        page.goto(address)


def test_the_inbox_shows_a_message_because_it_is_told(front: Stage, page: Page) -> None:
    page.add_init_script(WITHOUT_POLLING)
    opened(page, INBOX)
    for text in ("Is it ready?", "And this?"):
        front.post.say(new_phone(), text)
        expect(page.locator(".chat").first).to_contain_text(text, timeout=SOON)
    expect(page).to_have_title("(2) Inbox · WhatsApp memory")


def test_a_conversation_with_the_inbox_beside_it_has_one_stream(front: Stage, page: Page) -> None:
    page.add_init_script(WITHOUT_POLLING)
    phone = new_phone()
    front.post.say(phone, "Good morning")
    opened(page, INBOX)
    with page.expect_response(is_asked_for, timeout=SOON):
        page.locator(".chat", has_text="Good morning").get_by_role("link").click()
    front.post.say(phone, "Is it ready?")
    expect(page.locator(".bubble .text").last).to_have_text("Is it ready?", timeout=SOON)
    expect(page.locator(".inbox-pane .chat").first).to_contain_text("Is it ready?", timeout=SOON)
    assert page.evaluate(STATES) == [OPEN]


def test_a_page_that_nobody_looks_at_has_no_stream(front: Stage, page: Page) -> None:
    page.add_init_script(WITHOUT_POLLING)
    opened(page, INBOX)
    page.evaluate("setHidden(true)")
    assert page.evaluate(STATES) == [CLOSED]
    with page.expect_response(is_asked_for, timeout=SOON):
        page.evaluate("setHidden(false)")
    front.post.say(new_phone(), "Is it ready now?")
    expect(page.locator(".chat").first).to_contain_text("Is it ready now?", timeout=SOON)
    assert page.evaluate(STATES) == [CLOSED, OPEN]


def test_a_page_asks_by_itself_while_there_is_no_stream(front: Stage, page: Page) -> None:
    page.add_init_script(WITH_POLLING)
    opened(page, INBOX)
    kill(family(front.installation.programs["live"]))
    try:
        front.post.say(new_phone(), "Do you hear me?")
        expect(page.locator(".chat").first).to_contain_text("Do you hear me?", timeout=SOON)
    finally:
        start_streams(front.installation)
