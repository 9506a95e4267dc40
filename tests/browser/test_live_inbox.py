"""The open inbox in a browser: what comes in appears by itself, and nobody loses their place."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page, expect

from memoryproject.foundation.integrations.whatsapp.events import Party
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.models import ChatActivity, ChatLabel, ChatPause, Label, ReviewedMark, Turn
from tests.browser.visit import Visit, is_scrolled_sideways
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


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


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


def test_the_shortcuts_are_shown_and_open_a_conversation(staff: Page, world: World) -> None:
    world.say(CLIENT, "hello")
    staff.goto(INBOX)
    press(staff, "?")
    expect(staff.get_by_role("dialog")).to_contain_text("mark as reviewed")
    # In the dialog no key does anything to the list.
    press(staff, "e", "Escape")
    expect(staff.get_by_role("dialog")).to_have_count(0)
    press(staff, "j")
    with staff.expect_navigation(url="**/conversation/"):
        press(staff, "Enter")
    assert not ReviewedMark.objects.exists()


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
    day = timezone.now() - timedelta(days=2, seconds=5)
    expect(staff.locator(".chat time").last).to_have_attribute("title", f"{day:%-d %b %Y, %H:%M}")
    staff.get_by_role("button", name="עברית").click()
    expect(staff.locator(".chat time")).to_have_text(["עכשיו", "3 דק׳", "5 שע׳", "יומיים"])


def test_a_row_has_two_lines_on_a_phone(staff: Page, world: World) -> None:
    staff.set_viewport_size({"width": 390, "height": 844})
    name = "Nobody with a name as long as this one has ever written to a café"
    party = Party(phone="15550100123", name=name)
    world.receive(message_from(CLIENT, "x" * 300, party=party))
    world.receive(message_from(OTHER_CLIENT, "hello"))
    chat = world.chat(CLIENT)
    for number in range(4):
        label = Label.objects.create(name=f"A label with a long name, no. {number}")
        ChatLabel.objects.create(chat=chat, label=label)
    ChatPause.objects.create(chat=chat)
    Turn.objects.filter(chat=chat).update(state="failed", finished_at=timezone.now())
    staff.goto(INBOX)
    heights = [row.bounding_box()["height"] for row in staff.locator(".chat").all()]  # type: ignore[index]
    assert max(heights) < 75
    assert not is_scrolled_sideways(staff)
    expect(staff.get_by_text("1 answer failed")).to_be_visible()


def test_a_colleague_who_has_the_conversation_open_is_named(
    visit: Visit, staff: Page, world: World
) -> None:
    world.say(CLIENT, "hello")
    noa = Client()
    noa.force_login(User.objects.create_superuser("noa"))
    address = f"{INBOX}{world.chat(CLIENT).pk}"
    staff.goto(f"{address}/conversation/")
    expect(staff.locator("#viewers")).to_be_hidden()
    noa.get(f"{address}/viewers/", headers={"X-Live": "yes"})
    expect(staff.get_by_text("noa is viewing")).to_be_visible(timeout=SOON)
    assert visit.troubles() == []
