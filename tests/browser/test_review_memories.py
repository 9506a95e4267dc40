"""The memories to review, in a browser: many at once, by mouse and by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from memories_app.models import Memory
from memories_app.store.duplicate_lookup import proposal_reopen
from sessions_app.models import Turn
from sessions_app.turns.answer_review import review_reasons
from tests.browser.visit import Visit, clicks, count_clicks, looked_at
from tests.remembering import remember
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WAITING = "/admin/memories_app/memory/waiting/"
# The newest stands first.
TEXTS = ("Noa likes juice", "Yossi likes coffee", "Dana likes tea")


@pytest.fixture
def proposed(world: World) -> list[Memory]:
    made = [remember(text, proposed=True, confidence=0.4) for text in reversed(TEXTS)]
    return made[::-1]


def status(memory: Memory) -> str:
    return Memory.objects.get(pk=memory.pk).status


def test_three_clicks_approve_all(visit: Visit, staff: Page, proposed: list[Memory]) -> None:
    count_clicks(staff)
    staff.goto("/admin/")
    with staff.expect_navigation():
        staff.get_by_role("link", name="suggested memories: 3").click()
    assert looked_at(staff) == []
    staff.get_by_label("Tick all on this page").click()
    with staff.expect_navigation():
        staff.get_by_role("button", name="Approve ticked").click()
    assert clicks(staff) <= 3
    expect(staff.get_by_text("3 memories are approved.")).to_be_visible()
    assert {status(each) for each in proposed} == {"active"}
    assert visit.troubles() == []


def test_they_are_reviewed_by_keyboard(visit: Visit, staff: Page, proposed: list[Memory]) -> None:
    first, second, third = proposed
    cards = staff.locator("article.waiting")
    staff.goto(WAITING)
    staff.keyboard.press("j")
    staff.keyboard.press("j")
    expect(cards.nth(1)).to_be_focused()
    with staff.expect_navigation():
        staff.keyboard.press("r")
    assert not Memory.objects.filter(pk=second.pk).exists()
    # What followed stands in its place.
    expect(cards.nth(1)).to_be_focused()
    staff.keyboard.press("k")
    expect(cards.nth(0)).to_be_focused()
    with staff.expect_navigation():
        staff.keyboard.press("a")
    assert status(first) == "active"
    expect(cards.nth(0)).to_be_focused()
    staff.keyboard.press("e")
    expect(staff.get_by_label("What it should say")).to_be_focused()
    assert status(third) == "proposed"
    assert visit.troubles() == []


def test_who_types_decides_nothing(visit: Visit, staff: Page, proposed: list[Memory]) -> None:
    staff.goto(WAITING)
    staff.keyboard.press("j")
    staff.keyboard.press("e")
    text = staff.get_by_label("What it should say").first
    text.fill("")
    staff.keyboard.type("jar xe?")
    expect(text).to_have_value("jar xe?")
    expect(staff.get_by_role("dialog")).to_be_hidden()
    staff.keyboard.press("Escape")
    expect(staff.locator("article.waiting").first).to_be_focused()
    staff.get_by_label("Reason").first.focus()
    staff.keyboard.press("a")
    expect(staff).to_have_url(f"{visit.url}{WAITING}")
    assert {status(each) for each in proposed} == {"proposed"}


def test_all_that_is_to_be_decided_is_one_queue_by_keyboard(
    visit: Visit, staff: Page, world: World, proposed: list[Memory]
) -> None:
    both = [remember("Dana drinks tea"), remember("Dana drinks much tea")]
    proposal = proposal_reopen(both)
    world.say(CLIENT, "When do you open?")
    turn = Turn.objects.latest("id")
    Turn.objects.filter(pk=turn.pk).update(state="failed")
    count_clicks(staff)
    staff.goto("/admin/sessions_app/chat/?needs=1")
    staff.get_by_role("link", name="Suggested memory").first.click()
    staff.get_by_role("button", name="Approve", exact=True).first.click()
    expect(staff.get_by_text("It is approved, and counts from now on.")).to_be_visible()
    assert clicks(staff) <= 2
    assert status(proposed[0]) == "active"
    cards = staff.locator("article.waiting")
    expect(cards).to_have_count(4)
    assert looked_at(staff) == []
    cards.nth(2).focus()
    with staff.expect_navigation():
        staff.keyboard.press("r")
    proposal.refresh_from_db()
    assert (proposal.state, {status(each) for each in both}) == ("dismissed", {"active"})
    expect(cards.nth(2)).to_contain_text("When do you open?")
    expect(cards.nth(2)).to_be_focused()
    with staff.expect_navigation():
        staff.keyboard.press("a")
    expect(staff.get_by_text("The answer is resolved.")).to_be_visible()
    expect(cards).to_have_count(2)
    assert review_reasons(turn.pk) == []
    with staff.expect_navigation():
        staff.keyboard.press("u")
    expect(cards).to_have_count(3)
    assert review_reasons(turn.pk) == ["failed"]
    assert visit.troubles() == []
