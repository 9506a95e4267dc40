"""The workspace: why and teach beside a conversation, without leaving it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from memories_app.models import Memory
from sessions_app.models import AnswerRating, Turn
from tests.browser.visit import Visit, clicks, count_clicks, looked_at
from tests.world import CLIENT, World, remember

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
INBOX = "/admin/sessions_app/chat/"
STALE, RIGHT = "We close at six on Fridays", "We close at two on Fridays"
QUESTION = "When do you close on Fridays?"


@pytest.fixture
def misled(world: World) -> Turn:
    """An answer that recalled a memory that is wrong."""
    world.with_answer_rules(min_similarity=0.0)
    remember(world, STALE)
    world.say(CLIENT, QUESTION)
    return Turn.objects.latest("id")


def conversation(page: Page, turn: Turn) -> None:
    page.goto(f"{INBOX}{turn.chat_id}/conversation/")


def test_why_is_two_clicks_from_the_inbox_and_a_correction_three(
    visit: Visit, staff: Page, misled: Turn
) -> None:
    count_clicks(staff)
    staff.goto(INBOX)
    with staff.expect_navigation():
        staff.locator(".chat-who a").first.click()
    page = staff.url
    staff.locator(".bubble.out .text").last.click()
    why = staff.get_by_role("tabpanel", name="Why")
    expect(why.locator(".recalled > li").first).to_contain_text(STALE)
    assert clicks(staff) <= 2
    why.get_by_role("link", name="Edit…").first.click()
    text = staff.get_by_label("What it should say").first
    expect(text).to_be_focused()
    text.fill(RIGHT)
    staff.keyboard.press("Control+Enter")
    expect(staff.locator("#toasts")).to_contain_text("The memory is corrected.")
    assert clicks(staff) <= 3
    assert Memory.objects.filter(content=RIGHT).exists()
    staff.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(staff.locator("#toasts")).to_contain_text("It is undone.")
    assert Memory.objects.filter(content=STALE).exists()
    assert looked_at(staff) == []
    assert (staff.url, visit.troubles()) == (page, [])


def test_the_pane_works_by_keyboard(visit: Visit, staff: Page, misled: Turn) -> None:
    conversation(staff, misled)
    bubble = staff.locator(".bubble.out").last
    bubble.focus()
    staff.keyboard.press("Enter")
    expect(staff.get_by_role("tab", name="Why", selected=True)).to_be_focused()
    staff.keyboard.press("ArrowRight")
    expect(staff.get_by_role("tab", name="Teach", selected=True)).to_be_focused()
    staff.get_by_role("button", name="Bad").press("Enter")
    expect(staff.locator("#toasts")).to_contain_text("You rated this answer bad")
    expect(staff.get_by_role("tab", name="Teach", selected=True)).to_be_visible()
    assert AnswerRating.objects.get(turn=misled).is_good is False
    staff.keyboard.press("Escape")
    expect(bubble).to_be_focused()
    expect(staff.get_by_role("tab", name="Person", selected=True)).to_be_visible()
    staff.keyboard.press("t")
    expect(staff.get_by_role("tab", name="Teach", selected=True)).to_be_focused()
    assert visit.troubles() == []


def test_what_is_taught_survives_leaving_and_a_refusal(
    visit: Visit, staff: Page, misled: Turn
) -> None:
    conversation(staff, misled)
    staff.locator(".bubble.out .why-act").last.click()
    staff.get_by_role("tab", name="Teach").click()
    field = staff.get_by_label("What the assistant should know")
    # The question teaches nothing: it comes back as it was typed.
    expect(field).to_have_value(QUESTION)
    staff.get_by_role("button", name="Remember for everyone").click()
    expect(staff.get_by_role("alert")).to_contain_text("This is the question")
    field.fill(RIGHT)
    staff.goto(INBOX)
    conversation(staff, misled)
    staff.locator(".bubble.out .why-act").last.click()
    expect(field).to_have_value(RIGHT)
    staff.get_by_role("tab", name="Teach").click()
    staff.get_by_role("button", name="Remember for everyone").click()
    expect(staff.locator("#toasts")).to_contain_text("It is remembered for everyone")
    assert Memory.objects.get(content=RIGHT).visibility == "public"
    staff.reload()
    staff.locator(".bubble.out .why-act").last.click()
    expect(field).to_have_value(QUESTION)
    assert visit.troubles() == []


def test_a_narrow_screen_opens_the_pane_over_the_conversation(
    visit: Visit, staff: Page, misled: Turn
) -> None:
    staff.set_viewport_size({"width": 390, "height": 800})
    conversation(staff, misled)
    staff.locator(".bubble.out .text").last.click()
    expect(staff.get_by_role("tabpanel", name="Why")).to_contain_text(STALE)
    staff.keyboard.press("Escape")
    expect(staff.locator("#about")).to_be_hidden()
    assert visit.troubles() == []
