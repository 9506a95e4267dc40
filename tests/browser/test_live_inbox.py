"""The open inbox in a browser: what comes in appears by itself, and nobody loses their place."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from tests.browser.visit import Visit
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

INBOX = "/admin/sessions_app/chat/"
SOON = 20_000
HURRIED = """
const patient = window.setTimeout;
window.setTimeout = (what, milliseconds, ...rest) => patient(what, milliseconds / 10, ...rest);
"""


@pytest.fixture
def staff(staff: Page) -> Page:
    """The page looks for what is new several times a second."""
    staff.add_init_script(HURRIED)
    return staff


def test_a_message_appears_in_the_open_inbox(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    staff.goto(INBOX)
    first = staff.locator(".chat").first
    expect(first).to_contain_text(CLIENT)
    chosen = staff.locator(".chat", has_text=CLIENT).get_by_role("checkbox")
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


def test_the_first_message_of_all_appears(staff: Page, world: World) -> None:
    staff.goto(INBOX)
    expect(staff.get_by_text("Nobody has written yet.")).to_be_visible()
    world.say(CLIENT, "Good morning")
    expect(staff.locator(".chat")).to_have_count(1, timeout=SOON)
    expect(staff.get_by_role("button", name="Apply").last).to_be_visible()


def test_the_sound_is_off_until_somebody_wants_it(staff: Page, world: World) -> None:
    staff.goto(INBOX)
    sound = staff.get_by_role("button", name="Sound")
    expect(sound).to_have_attribute("aria-pressed", "false")
    sound.click()
    staff.reload()
    expect(sound).to_have_attribute("aria-pressed", "true")
    sound.click()
    staff.reload()
    expect(sound).to_have_attribute("aria-pressed", "false")


def test_who_is_logged_out_meanwhile_sees_no_list_any_more(staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    staff.goto(INBOX)
    expect(staff.locator(".chat")).to_have_count(1)
    session = next(each for each in staff.context.cookies() if "session" in each["name"])
    client = Client()
    client.cookies[session["name"]] = session["value"]
    client.post("/admin/logout/")
    expect(staff.get_by_text("You are logged out")).to_be_visible(timeout=SOON)
    expect(staff.locator(".chat")).to_have_count(0)
