"""Staff's pages of memories in a browser: readable at every width, light and dark, and usable."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from memories_app.models import Memory, MergeProposal
from memoryproject.foundation.audit.audit_events import Actor
from sessions_app.embedding.choice import embedder
from tests.browser.visit import Visit, looked_at, style
from tests.remembering import memory_update, remember
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LIST = "/admin/memories_app/memory/"
PROPOSALS = "/admin/memories_app/mergeproposal/"
STAFF = Actor("staff", "dana")


@pytest.fixture
def memories(world: World) -> Memory:
    """Of every kind; the one with a history is returned."""
    world.remember(CLIENT, "Dana likes tea " + "x" * 300)
    memory = remember("המחיר הוא 35 שקלים", tags=("מחירים",))
    memory_update(
        memory_id=memory.pk,
        content="המחיר הוא 40 שקלים",
        actor=STAFF,
        embedder=embedder(),
    )
    remember("The customer Dana Levi prefers morning meetings in the Haifa office")
    remember("Customer Dana Levi prefers meetings in the morning, Haifa office")
    remember("Shop 7 opens at 9", pinned=True)
    remember("Shop 7 opens at 10")
    remember("Perhaps <b>Yossi</b> likes coffee", proposed=True, confidence=0.4)
    return memory


def test_every_page_fits_and_is_accessible(visit: Visit, staff: Page, memories: Memory) -> None:
    proposal = MergeProposal.objects.get()
    for address in (
        LIST,
        f"{LIST}?q=when+are+meetings",
        f"{LIST}{memories.pk}/change/",
        f"{LIST}add/",
        f"{LIST}waiting/",
        f"{LIST}import/",
        PROPOSALS,
        f"{PROPOSALS}{proposal.pk}/change/",
    ):
        staff.goto(address)
        assert looked_at(staff) == [], address
    assert visit.troubles() == []


def test_a_hebrew_history_runs_from_the_right(staff: Page, memories: Memory) -> None:
    staff.goto(f"{LIST}{memories.pk}/change/")
    assert style(staff, ".diff", "direction") == "rtl"
    assert staff.locator("#content .diff del").first.inner_text().strip().endswith("35")


def test_rows_are_changed_in_place(visit: Visit, staff: Page, memories: Memory) -> None:
    staff.goto(LIST)
    staff.select_option(f'[name="vis-{memories.pk}"]', "public")
    with staff.expect_navigation():
        staff.click("text=Save visibility")
    expect(staff.get_by_text("The visibility of 1 memory was changed.")).to_be_visible()
    with staff.expect_navigation():
        staff.click(f'button.pin[value="{memories.pk}"]')
    expect(staff.locator(f'button.pin[value="{memories.pk}"]')).to_have_attribute(
        "aria-pressed", "true"
    )
    memories.refresh_from_db()
    assert (memories.visibility, memories.pinned) == ("public", True)
    assert visit.troubles() == []


def test_what_waits_is_corrected_by_the_keyboard_alone(staff: Page, memories: Memory) -> None:
    staff.goto(f"{LIST}waiting/")
    staff.locator(".waiting summary").focus()
    staff.keyboard.press("Enter")
    staff.keyboard.press("Tab")
    staff.keyboard.press("Control+A")
    staff.keyboard.type("Yossi likes coffee")
    staff.keyboard.press("Tab")
    with staff.expect_navigation():
        staff.keyboard.press("Enter")
    expect(staff.get_by_text("It is approved as you wrote it")).to_be_visible()
    assert Memory.objects.filter(content="Yossi likes coffee", status="active").exists()


def test_a_contradiction_is_decided_in_the_list(staff: Page, memories: Memory) -> None:
    staff.goto(PROPOSALS)
    with staff.expect_navigation():
        staff.get_by_role("button", name="Keep the older").click()
    expect(staff.get_by_text("The older memory is kept")).to_be_visible()
    assert Memory.objects.get(content="Shop 7 opens at 10").status == "superseded"
