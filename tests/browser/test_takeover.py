"""Staff take a chat over in a browser, by keyboard, on any screen."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from sessions_app.models import CannedReply, ChatPause, Turn
from tests.browser.visit import Visit, looked_at
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def conversation(staff: Page, world: World) -> Page:
    world.say(CLIENT, "Is anybody there?")
    staff.goto(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/")
    return staff


def test_a_reply_is_sent_by_the_keys_and_once(
    visit: Visit, conversation: Page, world: World
) -> None:
    box = conversation.get_by_label("Reply as staff")
    box.fill("שלום, כאן דנה")
    assert box.evaluate("element => getComputedStyle(element).direction") == "rtl"
    with conversation.expect_navigation():
        box.press("Control+Enter")
    expect(conversation.get_by_text("Your reply is on its way.")).to_be_visible()
    expect(conversation.get_by_role("heading", name="The assistant is paused")).to_be_visible()
    world.work()
    assert [part.text for part in world.provider.sent][1:] == ["שלום, כאן דנה"]
    assert Turn.objects.filter(by_hand=True).count() == 1
    assert visit.troubles() == []


def test_paused_and_handed_back_by_keyboard_on_any_screen(
    visit: Visit, conversation: Page, world: World
) -> None:
    conversation.get_by_text("Pause assistant").press("Enter")
    assert looked_at(conversation) == []
    with conversation.expect_navigation():
        conversation.get_by_role("button", name="Until I turn it on").press("Enter")
    assert ChatPause.objects.get().until is None
    world.say(CLIENT, "Hello?")
    conversation.reload()
    expect(conversation.locator("#takeover")).to_contain_text("1 message came in meanwhile")
    assert looked_at(conversation) == []
    with conversation.expect_navigation():
        conversation.get_by_role("button", name="Turn assistant back on, and answer").press("Enter")
    expect(conversation.get_by_text("answers the last message now")).to_be_visible()
    world.work()
    assert world.provider.sent[-1].text == "answer to: Hello?"
    assert visit.troubles() == []


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_on_a_page_of_its_own_its_menus_are_in_sight(
    visit: Visit, staff: Page, world: World, size: tuple[int, int]
) -> None:
    """A refused time or reply leads to that page, which has no conversation above the panel."""
    for number in range(8):
        name = f"hours{number}"
        CannedReply.objects.create(name=name, shortcut=name, text="Open until five. " * 9)
    world.say(CLIENT, "Is anybody there?")
    staff.set_viewport_size({"width": size[0], "height": size[1]})
    staff.goto(f"/admin/sessions_app/turn/takeover/{world.chat(CLIENT).pk}/")
    box = staff.get_by_label("Reply as staff")
    box.press("/")
    replies = staff.get_by_role("listbox", name="Canned replies")
    expect(replies).to_be_in_viewport(ratio=1)
    expect(box).to_be_in_viewport(ratio=1)
    box.press("Escape")
    staff.get_by_text("Pause assistant").press("Enter")
    expect(staff.locator(".pause .panel")).to_be_in_viewport(ratio=1)
    assert looked_at(staff) == []
    assert visit.troubles() == []


def test_an_open_page_tells_how_long_replies_are_taken(timed: Visit, world: World) -> None:
    page = timed.page
    world.say(CLIENT, "Is anybody there?")
    page.goto(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/")
    told = page.locator("#takeover-window")
    expect(told).to_contain_text("left")
    page.get_by_label("Reply as staff").fill("half a sentence")
    page.clock.run_for("23:05:00")
    expect(told.locator("[data-left]")).to_have_text(re.compile(r"^5\d minutes$"))
    page.clock.run_for("01:00:00")
    expect(told).to_contain_text("has closed meanwhile")
    expect(page.get_by_label("Reply as staff")).to_have_value("half a sentence")
    assert timed.troubles() == []
