"""A conversation in a browser: as on WhatsApp, up to date while it is open, on any screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visit import Visit, is_scrolled_sideways
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HEBREW = "מה הקוד לדלת הכניסה?"
CHATS = "/admin/sessions_app/chat/"


def open_conversation(staff: Page) -> None:
    staff.goto(CHATS)
    staff.get_by_role("row", name=CLIENT).get_by_role("link", name="read").click()
    expect(staff.get_by_role("log")).to_be_visible()


def left_of(page: Page, text: str) -> float:
    box = page.locator(".bubble", has_text=text).first.bounding_box()
    assert box is not None
    return box["x"]


def test_the_persons_stand_on_one_side_and_ours_on_the_other(
    visit: Visit, staff: Page, world: World
) -> None:
    world.say(CLIENT, HEBREW)
    open_conversation(staff)
    question = staff.locator(".bubble.in .text")
    expect(question).to_have_text(HEBREW)
    assert question.evaluate("element => getComputedStyle(element).direction") == "rtl"
    assert left_of(staff, "answer to:") > staff.locator(".bubble.in").first.bounding_box()["x"]  # type: ignore[index]
    assert visit.troubles() == []


def test_what_is_said_meanwhile_comes_in_by_itself(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    open_conversation(staff)
    world.say(CLIENT, "Is it ready?")
    expect(staff.locator(".bubble.out .text").last).to_have_text(
        "answer to: Is it ready?", timeout=20_000
    )
    expect(staff.locator(".bubble")).to_have_count(4)
    assert visit.troubles() == []


def test_the_newest_is_in_sight_and_older_ones_a_link_away(staff: Page, world: World) -> None:
    for number in range(40):
        world.say(CLIENT, f"question {number}")
    open_conversation(staff)
    expect(staff.get_by_text("answer to: question 39")).to_be_in_viewport()
    staff.get_by_role("link", name="Older messages").click()
    expect(staff.get_by_text("The conversation begins here.")).to_be_attached()
    staff.get_by_role("link", name="to the newest").click()
    expect(staff.get_by_text("answer to: question 39")).to_be_in_viewport()


def test_a_search_leads_to_the_message_in_its_place(staff: Page, world: World) -> None:
    world.say(CLIENT, "The dishwasher leaks")
    for number in range(40):
        world.say(CLIENT, f"question {number}")
    open_conversation(staff)
    staff.get_by_role("searchbox", name="Find").fill("dishwasher")
    staff.get_by_role("searchbox", name="Find").press("Enter")
    staff.locator(".found a", has_text="The dishwasher leaks").last.click()
    expect(staff.locator(".bubble.at")).to_be_in_viewport()
    expect(staff.locator(".bubble.at .text")).to_have_text("The dishwasher leaks")


@pytest.mark.parametrize("text", ["x" * 20_000, HEBREW * 500, "word " * 2_000])
def test_on_a_phone_nothing_is_wider_than_the_screen(staff: Page, world: World, text: str) -> None:
    world.say(CLIENT, text)
    staff.set_viewport_size({"width": 390, "height": 844})
    open_conversation(staff)
    assert not is_scrolled_sideways(staff)


def test_why_leads_to_the_replay_of_the_answer(staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    open_conversation(staff)
    staff.locator(".bubble.out").get_by_role("link", name="why").click()
    expect(staff.locator(".field-question")).to_contain_text("Good morning")


def test_a_chat_in_which_nothing_was_said_says_so(staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    world.chat(CLIENT).messages.all().delete()
    open_conversation(staff)
    expect(staff.get_by_text("Nothing has been said in this chat.")).to_be_visible()
