"""Teaching the assistant where one sees its mistake, in a browser, with what it costs in clicks."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from memories_app.facts.validation import NewMemory
from memories_app.models import Memory
from memories_app.store.remember import memory_remember
from sessions_app.models import Turn
from tests.browser.clicks import clicks, count_clicks
from tests.browser.visit import Visit, looked_at
from tests.world import CLIENT, World

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
FACT = "We are open on Fridays until 14:00"


def test_a_missing_fact_is_taught_in_three_clicks(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Are you open on Fridays?")
    count_clicks(staff)
    staff.goto(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/")
    with staff.expect_navigation():
        staff.get_by_role("link", name="why").click()
    staff.get_by_text("Remember…").click()
    text = staff.get_by_label("What the assistant should know")
    expect(text).to_have_value("Are you open on Fridays?")
    assert looked_at(staff) == []
    text.fill(FACT)
    with staff.expect_navigation():
        staff.get_by_role("button", name="Remember for this client").click()
    assert clicks(staff) <= 3
    expect(staff.get_by_text("It is remembered for this client from now on.")).to_be_visible()
    memory = Memory.objects.get()
    assert (memory.content, memory.visibility) == (FACT, "chat")
    assert visit.troubles() == []


def test_the_answers_text_may_be_the_beginning(visit: Visit, staff: Page, world: World) -> None:
    world.say(CLIENT, "Are you open on Fridays?")
    staff.goto(f"/admin/sessions_app/turn/{Turn.objects.latest('id').pk}/change/")
    expect(staff.get_by_role("button", name="Begin with the answer's text")).to_be_hidden()
    staff.get_by_text("Remember…").press("Enter")
    staff.get_by_role("button", name="Begin with the answer's text").press("Enter")
    text = staff.get_by_label("What the assistant should know")
    expect(text).to_have_value("answer to: Are you open on Fridays?")
    expect(text).to_be_focused()
    assert visit.troubles() == []


def test_a_wrong_memory_is_found_and_mended_in_three_clicks(
    visit: Visit, staff: Page, world: World
) -> None:
    world.with_answer_rules(min_similarity=0.0)
    world.remember(CLIENT, "TestCorp pays its invoices within 30 days")
    world.say(CLIENT, "/reset")
    world.say(CLIENT, "When does TestCorp pay its invoices?")
    count_clicks(staff)
    staff.goto(f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/")
    with staff.expect_navigation():
        staff.get_by_role("link", name="why").last.click()
    mended = staff.locator(".recalled > li").first
    mended.get_by_text("Edit…").click()
    text = mended.get_by_label("What it should say")
    expect(text).to_have_value("TestCorp pays its invoices within 30 days")
    assert looked_at(staff) == []
    text.fill("TestCorp pays its invoices within 60 days")
    with staff.expect_navigation():
        mended.get_by_role("button", name="Save").click()
    assert clicks(staff) <= 3
    expect(staff.get_by_text("The memory is corrected.")).to_be_visible()
    assert Memory.objects.get().content == "TestCorp pays its invoices within 60 days"
    assert visit.troubles() == []


def test_near_misses_come_after_the_page_and_can_be_mended(
    visit: Visit, staff: Page, world: World
) -> None:
    memory_remember(
        NewMemory(content="The garden has old trees beside the house", visibility="public"),
        embedder=world.dependencies.embedder,
    )
    world.say(CLIENT, "When does TestCorp pay its invoices?")
    staff.goto(f"/admin/sessions_app/turn/{Turn.objects.latest('id').pk}/change/")
    near = staff.locator("li.near")
    expect(near).to_contain_text("too weak to be used")
    assert looked_at(staff) == []
    near.get_by_text("Edit…").press("Enter")
    near.get_by_label("What it should say").fill("TestCorp pays on Mondays")
    with staff.expect_navigation():
        near.get_by_role("button", name="Save").press("Enter")
    expect(near).to_contain_text("would be used now")
    assert visit.troubles() == []


def test_answers_to_review_are_gone_through_one_by_one(
    visit: Visit, staff: Page, world: World
) -> None:
    for text in ("Where can I park?", "Where can I sit?"):
        world.say(CLIENT, text)
    staff.goto("/admin/sessions_app/turn/")
    with staff.expect_navigation():
        staff.get_by_role("link", name="Answers to review 2").press("Enter")
    with staff.expect_navigation():
        staff.locator("#result_list tbody th a").first.press("Enter")
    expect(staff.get_by_text("2 left")).to_be_visible()
    staff.get_by_label("What is bad about it").select_option("unknown")
    with staff.expect_navigation():
        staff.get_by_role("button", name="Bad").press("Enter")
    expect(staff.get_by_role("button", name="Bad")).to_have_attribute("aria-pressed", "true")
    assert looked_at(staff) == []
    with staff.expect_navigation():
        staff.get_by_role("button", name="Resolve, next").press("Enter")
    expect(staff.locator(".bubble.in")).to_contain_text("Where can I park?")
    expect(staff.get_by_text("1 left")).to_be_visible()
    assert visit.troubles() == []
