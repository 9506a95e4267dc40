"""The inbox and a conversation in a browser: as on WhatsApp, up to date while it is open, on any
screen, by a keyboard alone, and beside each other in a wide window."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.models import Bookmark, ChatLabel, Label, Note, ReviewedMark
from tests.browser.visit import SOON, Visit, is_scrolled_sideways
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


HEBREW = "מה הקוד לדלת הכניסה?"
CHATS = "/admin/sessions_app/chat/"
# What is offered for ten seconds stays: on a busy machine one of them isn't enough to see it.
HURRIED = """
const patient = window.setTimeout;
window.setTimeout = (what, ms, ...rest) => patient(what, ms < 10000 ? ms / 10 : ms, ...rest);
"""


@pytest.fixture
def hurried(staff: Page) -> None:
    """The page looks for what is new several times a second, instead of every two seconds."""
    staff.add_init_script(HURRIED)


def open_conversation(staff: Page) -> None:
    """By the inbox, as everybody does."""
    staff.goto(CHATS)
    with staff.expect_navigation():
        staff.locator(".chat", has_text=number_shown(CLIENT)).get_by_role("link").click()
    expect(staff.get_by_role("log")).to_be_visible()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def left_of(page: Page, selector: str) -> float:
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return box["x"]


def test_on_a_telephone_messages_have_room_after_a_hand_over(staff: Page, world: World) -> None:
    for number in range(4):
        world.say(CLIENT, f"question {number}")
    world.say(CLIENT, "human please")
    staff.set_viewport_size({"width": 390, "height": 844})
    staff.goto(f"{CHATS}{world.chat(CLIENT).pk}/conversation/")
    expect(staff.get_by_text("The client asked for a person.")).to_be_visible()
    expect(staff.get_by_role("button", name="Send", exact=True)).to_be_in_viewport(ratio=1)
    box = staff.get_by_role("log").bounding_box()
    assert box is not None
    assert box["height"] > 844 * 0.45
    assert not is_scrolled_sideways(staff)


def test_both_have_their_own_side(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, HEBREW)
    open_conversation(staff)
    question = staff.locator(".bubble.in .text")
    expect(question).to_have_text(HEBREW)
    assert question.evaluate("element => getComputedStyle(element).direction") == "rtl"
    assert left_of(staff, ".bubble.out") > left_of(staff, ".bubble.in")
    assert visit.troubles() == []


@pytest.mark.usefixtures("hurried")
def test_what_is_said_meanwhile_comes_in_by_itself(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    open_conversation(staff)
    expect(staff.get_by_text("Unread from here")).to_be_visible()
    world.say(CLIENT, "Is it ready?")
    expect(staff.locator(".bubble.out .text").last).to_have_text(
        "answer to: Is it ready?", timeout=SOON
    )
    expect(staff.locator(".bubble")).to_have_count(4)
    # What was new when the page was opened stays marked; of it all nothing is new any more.
    expect(staff.get_by_text("Unread from here")).to_be_visible()
    staff.goto(CHATS)
    expect(staff.locator(".chat .badge")).to_have_count(0)
    assert visit.troubles() == []


def test_the_page_is_as_high_as_the_window(staff: Page, world: World) -> None:
    """Its parts scroll by themselves, with all that only screen readers read in them."""
    world.say(CLIENT, "Good morning")
    world.receive(*(message_from(OTHER_CLIENT, f"question {number}") for number in range(20)))
    chat = world.chat(CLIENT)
    labels = Label.objects.bulk_create(Label(name=f"label {number}") for number in range(20))
    ChatLabel.objects.bulk_create(ChatLabel(chat=chat, label=each) for each in labels)
    staff.goto(CHATS)
    for width in (1440, 1100, 390):
        staff.set_viewport_size({"width": width, "height": 700})
        staff.goto(f"{CHATS}{chat.pk}/conversation/")
        expect(staff.locator(".inbox-pane")).to_have_count(int(width > 1280))
        over = "document.documentElement.scrollHeight - window.innerHeight"
        assert staff.evaluate(over) == 0, width


def test_the_newest_is_in_sight_and_older_ones_a_link_away(staff: Page, world: World) -> None:
    for number in range(30):
        world.receive(message_from(CLIENT, f"question {number}"), message_from(CLIENT, "so?"))
    open_conversation(staff)
    staff.reload()
    expect(staff.locator(".bubble").last).to_be_in_viewport()
    with staff.expect_navigation():
        staff.get_by_role("link", name="Older messages").click()
    expect(staff.get_by_text("The conversation begins here.")).to_be_attached()
    with staff.expect_navigation():
        staff.get_by_role("link", name="to the newest").click()
    expect(staff.locator(".bubble").last).to_be_in_viewport()


def test_a_keyboard_alone_suffices_for_a_review(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "one")
    world.say(CLIENT, "two")
    Label.objects.create(name="Urgent", colour="red")
    open_conversation(staff)
    press(staff, "?")
    help_of_keys = staff.get_by_role("dialog", name="Shortcuts")
    expect(help_of_keys).to_be_visible()
    press(staff, "Escape")
    expect(help_of_keys).to_be_hidden()
    # From what is unread on, and back.
    press(staff, "j", "j", "j", "k")
    expect(staff.locator(".bubble").nth(1)).to_be_focused()
    with staff.expect_navigation():
        press(staff, "b")
    chosen = staff.locator(".bubble.at")
    expect(chosen).to_be_focused()
    assert Bookmark.objects.get().message == world.messages(CLIENT)[1]
    press(staff, "n")
    box = staff.locator(".note-form textarea")
    expect(box).to_be_focused()
    # In a field the keys are letters.
    staff.keyboard.type("jkrbn?")
    expect(box).to_have_value("jkrbn?")
    press(staff, "Tab")
    with staff.expect_navigation():
        press(staff, "Enter")
    note = Note.objects.get()
    assert (note.text, note.message) == ("jkrbn?", world.messages(CLIENT)[1])
    with staff.expect_navigation():
        press(staff, "r")
    expect(staff.locator(".review .state.good")).to_have_text("reviewed")
    assert ReviewedMark.objects.get().order_num == 4
    assert visit.troubles() == []


@pytest.mark.usefixtures("hurried")
def test_j_begins_at_what_is_unread_also_after_a_refresh(staff: Page, world: World) -> None:
    world.say(CLIENT, "one")
    open_conversation(staff)
    staff.goto(CHATS)
    world.say(CLIENT, "two")
    open_conversation(staff)
    world.say(CLIENT, "three")
    expect(staff.locator(".bubble")).to_have_count(6, timeout=SOON)
    press(staff, "j")
    expect(staff.locator(".bubble").nth(2)).to_be_focused()
    expect(staff.locator(".bubble:focus .text")).to_have_text("two")


@pytest.mark.usefixtures("hurried")
def test_what_is_forgotten_meanwhile_is_taken_off_the_page(staff: Page, world: World) -> None:
    world.say(CLIENT, "My secret is Zyqorvane")
    open_conversation(staff)
    expect(staff.get_by_role("log")).to_contain_text("Zyqorvane")
    world.chat(CLIENT).delete()
    expect(staff.get_by_role("alert")).to_contain_text("isn't there any more", timeout=SOON)
    expect(staff.locator("body")).not_to_contain_text("Zyqorvane")
    expect(staff.locator("body")).not_to_contain_text("Test User")


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


@pytest.mark.usefixtures("hurried")
def test_the_list_stays_beside_the_conversation(visit: Visit, wide: Page, world: World) -> None:
    for chat in (CLIENT, OTHER_CLIENT):
        world.say(chat, "hello")
    wide.goto(f"{CHATS}?state=open")
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


def test_a_keyboard_goes_from_one_to_the_next(visit: Visit, wide: Page, world: World) -> None:
    for chat in (CLIENT, OTHER_CLIENT):
        world.say(chat, "hello")
    wide.goto(CHATS)
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


def test_a_click_in_a_scrolled_list_opens_that_one(visit: Visit, wide: Page, world: World) -> None:
    for number in range(100, 120):
        world.receive(message_from(f"15550200{number}@c.us", "hello"))
    wide.goto(CHATS)
    with wide.expect_navigation():
        wide.locator(".chat-who a").first.click()
    with wide.expect_navigation():
        wide.locator(f"{PANE} .chat-who a").nth(12).click()
    expect(wide.locator(f"{PANE} .chat").nth(12)).to_have_class(re.compile("here"))
    expect(wide.locator(f"{PANE} .chat").nth(12)).to_be_in_viewport()
    assert visit.troubles() == []
