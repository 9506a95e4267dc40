"""The inbox and a conversation in a browser: as on WhatsApp, up to date while it is open, on any
screen, and by a keyboard alone."""

from __future__ import annotations

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.models import Bookmark, ChatLabel, Label, Note, ReviewedMark
from tests.browser.visit import Visit, looked_at
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HEBREW = "מה הקוד לדלת הכניסה?"
CHATS = "/admin/sessions_app/chat/"
HURRIED = """
const patient = window.setTimeout;
window.setTimeout = (what, milliseconds, ...rest) => patient(what, milliseconds / 10, ...rest);
"""


@pytest.fixture
def staff(staff: Page) -> Page:
    """The page looks for what is new several times a second, instead of every two seconds."""
    staff.add_init_script(HURRIED)
    return staff


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


def test_the_persons_stand_on_one_side_and_ours_on_the_other(
    visit: Visit, staff: Page, world: World
) -> None:
    world.say(CLIENT, HEBREW)
    open_conversation(staff)
    question = staff.locator(".bubble.in .text")
    expect(question).to_have_text(HEBREW)
    assert question.evaluate("element => getComputedStyle(element).direction") == "rtl"
    assert left_of(staff, ".bubble.out") > left_of(staff, ".bubble.in")
    assert visit.troubles() == []


def test_what_is_said_meanwhile_comes_in_by_itself(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    open_conversation(staff)
    expect(staff.get_by_text("Unread from here")).to_be_visible()
    world.say(CLIENT, "Is it ready?")
    expect(staff.locator(".bubble.out .text").last).to_have_text(
        "answer to: Is it ready?", timeout=20_000
    )
    expect(staff.locator(".bubble")).to_have_count(4)
    # What was new when the page was opened stays marked; of it all nothing is new any more.
    expect(staff.get_by_text("Unread from here")).to_be_visible()
    staff.goto(CHATS)
    expect(staff.locator(".chat .badge")).to_have_count(0)
    assert visit.troubles() == []


@pytest.mark.parametrize("width", [1440, 1100, 390])
def test_the_page_is_as_high_as_the_window(staff: Page, world: World, width: int) -> None:
    """Its parts scroll by themselves, with all that only screen readers read in them."""
    world.say(CLIENT, "Good morning")
    for number in range(20):
        Label.objects.create(name=f"label {number}")
        world.say(OTHER_CLIENT, f"question {number}")
    chat = world.chat(CLIENT)
    ChatLabel.objects.bulk_create(ChatLabel(chat=chat, label=each) for each in Label.objects.all())
    staff.set_viewport_size({"width": width, "height": 700})
    staff.goto(CHATS)
    staff.goto(f"{CHATS}{chat.pk}/conversation/")
    expect(staff.locator(".inbox-pane")).to_have_count(int(width > 1280))
    over = "document.documentElement.scrollHeight - window.innerHeight"
    assert staff.evaluate(over) == 0


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


def test_a_search_in_the_inbox_leads_to_the_message_in_its_place(staff: Page, world: World) -> None:
    world.receive(message_from(CLIENT, "The dishwashers leak"))
    for number in range(60):
        world.receive(message_from(CLIENT, f"question {number}"))
    staff.goto(CHATS)
    staff.get_by_role("searchbox", name="Search", exact=True).fill("dishwasher")
    with staff.expect_navigation():
        staff.get_by_role("searchbox", name="Search", exact=True).press("Enter")
    with staff.expect_navigation():
        staff.locator(".hits a").first.click()
    expect(staff.locator(".bubble.at")).to_be_in_viewport()
    expect(staff.locator(".bubble.at .text")).to_have_text("The dishwashers leak")
    expect(staff.locator(".bubble.at")).to_be_focused()


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


def test_j_begins_at_what_is_unread_also_after_the_page_refreshed_itself(
    staff: Page, world: World
) -> None:
    world.say(CLIENT, "one")
    open_conversation(staff)
    staff.goto(CHATS)
    world.say(CLIENT, "two")
    open_conversation(staff)
    world.say(CLIENT, "three")
    expect(staff.locator(".bubble")).to_have_count(6, timeout=20_000)
    press(staff, "j")
    expect(staff.locator(".bubble").nth(2)).to_be_focused()
    expect(staff.locator(".bubble:focus .text")).to_have_text("two")


def test_what_failed_while_somebody_looked_is_reviewed_with_the_rest(
    staff: Page, world: World
) -> None:
    """The page's time moves on with what it shows."""
    world.say(CLIENT, "Good morning")
    open_conversation(staff)
    world.chat(CLIENT).turns.update(state="failed", finished_at=timezone.now())
    expect(staff.get_by_text("the answer failed")).to_be_visible(timeout=20_000)
    with staff.expect_navigation():
        press(staff, "r")
    staff.goto(CHATS)
    expect(staff.locator(".chat .state.good")).to_have_text("reviewed")
    expect(staff.get_by_text("1 answer failed")).to_have_count(0)


def test_many_are_reviewed_in_the_inbox(staff: Page, world: World) -> None:
    world.say(CLIENT, "one")
    world.say("15550100456@c.us", "two")
    staff.goto(CHATS)
    staff.get_by_label("all on this page").check()
    with staff.expect_navigation():
        staff.get_by_role("button", name="Apply").click()
    expect(staff.get_by_text("2 conversations are marked as reviewed.")).to_be_visible()
    expect(staff.locator(".chat .state.good")).to_have_count(2)


def test_both_pages_are_for_everybody_on_any_screen(
    visit: Visit, staff: Page, world: World
) -> None:
    world.say(CLIENT, "x" * 5_000)
    world.say(CLIENT, HEBREW * 100)
    staff.goto(f"{CHATS}?unread=1")
    expect(staff.locator(".chat")).to_have_count(1)
    assert looked_at(staff) == []
    open_conversation(staff)
    assert looked_at(staff) == []
    assert visit.troubles() == []


def test_a_chosen_theme_stays(staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    staff.goto(CHATS)
    for theme, is_dark in (("dark", True), ("light", False)):
        staff.evaluate("theme => window.staffTheme.choose(theme)", theme)
        open_conversation(staff)
        dark = staff.evaluate("document.documentElement.classList.contains('dark')")
        assert dark is is_dark, theme


def test_why_leads_to_the_replay_of_the_answer(staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    turn = world.chat(CLIENT).turns.get()
    open_conversation(staff)
    with staff.expect_navigation():
        staff.locator(".bubble.out").get_by_role("link", name="why").click()
    assert f"/turn/{turn.pk}/" in staff.url


def test_a_chat_in_which_nothing_was_said_says_so(staff: Page, world: World) -> None:
    world.say(CLIENT, "Good morning")
    world.chat(CLIENT).messages.all().delete()
    open_conversation(staff)
    expect(staff.get_by_text("Nothing has been said in this chat.")).to_be_visible()


def test_what_is_forgotten_meanwhile_is_taken_off_the_page(staff: Page, world: World) -> None:
    world.say(CLIENT, "My secret is Zyqorvane")
    open_conversation(staff)
    expect(staff.get_by_role("log")).to_contain_text("Zyqorvane")
    world.chat(CLIENT).delete()
    expect(staff.get_by_role("alert")).to_contain_text("isn't there any more", timeout=20_000)
    expect(staff.locator("body")).not_to_contain_text("Zyqorvane")
    expect(staff.locator("body")).not_to_contain_text("Test User")


def test_who_is_logged_out_meanwhile_is_told(staff: Page, world: World) -> None:
    world.say(CLIENT, "My secret is Zyqorvane")
    open_conversation(staff)
    staff.context.clear_cookies()
    expect(staff.get_by_role("alert")).to_contain_text("logged out", timeout=20_000)
    expect(staff.locator("body")).not_to_contain_text("Zyqorvane")
    with staff.expect_navigation():
        staff.get_by_role("link", name="Log in again").click()
    expect(staff.get_by_label("Username")).to_be_visible()


def test_the_keys_work_on_a_hebrew_keyboard(staff: Page, world: World) -> None:
    world.say(CLIENT, HEBREW)
    open_conversation(staff)
    staff.evaluate(
        """document.body.dispatchEvent(
            new KeyboardEvent("keydown", {key: "ר", code: "KeyR", bubbles: true}))"""
    )
    expect(staff.get_by_text("1 conversation is marked as reviewed.")).to_be_visible()
