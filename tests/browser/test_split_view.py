"""The inbox beside a conversation in a wide window."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from memoryproject.foundation.text.phone_numbers import number_shown
from tests.browser.visit import Visit, is_scrolled_sideways, serious
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

INBOX = "/admin/sessions_app/chat/"
SOON = 20_000
PANE = ".inbox-pane"


@pytest.fixture
def wide(staff: Page) -> Iterator[Page]:
    staff.set_viewport_size({"width": 1440, "height": 700})
    yield staff
    staff.set_viewport_size({"width": 1280, "height": 800})


def row(page: Page, chat: str) -> str:
    return f'{PANE} .chat:has-text("{chat}")'


def opened(world: World, chat: str) -> re.Pattern[str]:
    return re.compile(f"{world.chat(chat).pk}/conversation/$")


def test_the_list_stays_beside_the_conversation(visit: Visit, wide: Page, world: World) -> None:
    for chat in (CLIENT, OTHER_CLIENT):
        world.say(chat, "hello")
    wide.goto(f"{INBOX}?state=open")
    wide.locator(".chat-who a").first.click()
    expect(wide).to_have_url(opened(world, OTHER_CLIENT))
    expect(wide.locator(f"{PANE} .chat")).to_have_count(2)
    expect(wide.locator(f"{PANE} .here")).to_contain_text(number_shown(OTHER_CLIENT))
    expect(wide.locator(f"{PANE} .inbox-states [aria-current]")).to_have_text("Open")
    assert not is_scrolled_sideways(wide)
    # A click opens the other one, and back, reload and the address work as with any page.
    wide.locator(f"{PANE} .chat-who a").last.click()
    expect(wide).to_have_url(opened(world, CLIENT))
    expect(wide.locator(f"{PANE} .here")).to_contain_text(number_shown(CLIENT))
    wide.go_back()
    expect(wide).to_have_url(opened(world, OTHER_CLIENT))
    wide.reload()
    expect(wide.locator(f"{PANE} .here")).to_contain_text(number_shown(OTHER_CLIENT))
    # What comes in appears in both.
    world.receive(message_from(OTHER_CLIENT, "Is it ready?"))
    expect(wide.locator(f"{PANE} .here")).to_contain_text("Is it ready?", timeout=SOON)
    expect(wide.locator("#timeline")).to_contain_text("Is it ready?", timeout=SOON)
    # A tab changes the list alone.
    wide.locator(f"{PANE} .inbox-tabs a", has_text="Mine").click()
    expect(wide.locator(f"{PANE} .chat")).to_have_count(0, timeout=SOON)
    expect(wide).to_have_url(opened(world, OTHER_CLIENT))
    assert visit.troubles() == []


def test_a_keyboard_goes_from_one_conversation_to_the_next(
    visit: Visit, wide: Page, world: World
) -> None:
    for chat in (CLIENT, OTHER_CLIENT):
        world.say(chat, "hello")
    wide.goto(INBOX)
    wide.keyboard.press("j")
    wide.keyboard.press("Enter")
    # Its scripts have run, too.
    wide.wait_for_url(opened(world, OTHER_CLIENT))
    wide.keyboard.press("Shift+J")
    wide.wait_for_url(opened(world, CLIENT))
    # The focus is in the list as before: j and k go through it, and Enter opens.
    expect(wide.locator(f"{PANE} .here a")).to_be_focused()
    wide.keyboard.press("k")
    expect(wide.locator(f"{PANE} .chat a").first).to_be_focused()
    wide.keyboard.press("Enter")
    wide.wait_for_url(opened(world, OTHER_CLIENT))
    # Among the messages they go through the messages.
    wide.locator("#timeline").focus()
    wide.keyboard.press("j")
    expect(wide.locator(".bubble").last).to_be_focused()
    assert visit.troubles() == []


def test_the_list_keeps_its_place(visit: Visit, wide: Page, world: World) -> None:
    for number in range(100, 120):
        world.receive(message_from(f"15550200{number}@c.us", "hello"))
    wide.goto(INBOX)
    wide.locator(".chat-who a").first.click()
    pane = wide.locator(PANE)
    pane.evaluate("pane => { pane.scrollTop = 300; }")
    top = pane.evaluate("pane => pane.scrollTop")
    assert top > 0
    place = pane.evaluate(
        "pane => [...pane.querySelectorAll('.chat')].findIndex((row) =>"
        " row.getBoundingClientRect().top > pane.getBoundingClientRect().top + 100)"
    )
    wide.locator(f"{PANE} .chat-who a").nth(place).click()
    expect(wide.locator(f"{PANE} .chat").nth(place)).to_have_class(re.compile("here"))
    assert wide.locator(PANE).evaluate("pane => pane.scrollTop") == top
    assert visit.troubles() == []


def test_a_narrow_window_has_the_conversation_alone(
    visit: Visit, staff: Page, world: World
) -> None:
    world.say(CLIENT, "hello")
    staff.set_viewport_size({"width": 1100, "height": 800})
    staff.goto(INBOX)
    staff.locator(".chat-who a").first.click()
    expect(staff.locator("#timeline")).to_be_visible()
    expect(staff.locator(PANE)).to_have_count(0)
    staff.set_viewport_size({"width": 1280, "height": 800})
    assert visit.troubles() == []


def test_the_split_view_and_the_search_can_be_used_by_everybody(
    visit: Visit, wide: Page, world: World
) -> None:
    for chat in (CLIENT, OTHER_CLIENT):
        world.say(chat, "hello lighthouse")
    wide.goto(INBOX)
    wide.locator(".chat-who a").first.click()
    expect(wide.locator(f"{PANE} .here")).to_be_visible()
    box = wide.get_by_role("searchbox", name="Search people, messages and memories")
    box.fill("lighthouse")
    expect(wide.locator(".search-hits mark").first).to_be_visible(timeout=SOON)
    for scheme in ("light", "dark"):
        wide.emulate_media(color_scheme=scheme)
        assert serious(wide) == []
    assert visit.troubles() == []
